import { setTimeout as sleep } from 'node:timers/promises';
import { DATABASE, MySqlServer } from './mysql-server';
import { freePort } from './redis-server';
import { until } from './until';

/** The user of the code under test, which has no rights beyond the two databases. */
const USER = 'app';
const OTHER = `${DATABASE}_too`;

/** Commits wait for the replica, before anybody sees what they changed, and for as long as it takes. */
const SETTINGS = [
  '--log-bin=bin',
  '--relay-log=relay',
  '--log-slave-updates',
  '--binlog-format=ROW',
  '--read-only=1',
  '--skip-slave-start',
  '--rpl-semi-sync-slave-enabled=1',
  '--rpl-semi-sync-master-wait-point=AFTER_SYNC',
  '--rpl-semi-sync-master-timeout=86400000',
];

/** How long a machine that has much else to do may take to replicate again, in milliseconds. */
const REPLICATES_MS = 60_000;

/** A primary and a replica of MariaDB, which confirms all commits. */
export class MySqlPair {
  #primary: MySqlServer;
  #replica: MySqlServer;

  private constructor(primary: MySqlServer, replica: MySqlServer) {
    this.#primary = primary;
    this.#replica = replica;
  }

  static async start(): Promise<MySqlPair> {
    const first = await MySqlServer.start('--server-id=1', ...SETTINGS);
    await first.query(`CREATE USER ${USER}@'%'`);
    await first.query(`CREATE DATABASE ${OTHER}`);
    for (const database of MySqlPair.databases) {
      await first.query(`GRANT ALL ON ${database}.* TO ${USER}@'%'`);
    }
    await first.shutDown();
    const pair = new MySqlPair(first, MySqlServer.copyOf(first, await freePort(), '--server-id=2', ...SETTINGS));
    await pair.#begin();
    return pair;
  }

  static readonly user = USER;
  static readonly databases: readonly string[] = [DATABASE, OTHER];

  get primary(): MySqlServer {
    return this.#primary;
  }

  get replica(): MySqlServer {
    return this.#replica;
  }

  /** Kills the primary, and starts it again a while later. */
  async recover(awayMs: number): Promise<void> {
    await this.#primary.kill();
    await sleep(awayMs);
    await this.#primary.start();
    await this.#lead(true);
  }

  /**
   * The replica becomes the primary, because that one was killed, or stopped for a while: then it goes on and answers whoever is still
   * connected, for `ms`. `moved` is called when the new primary is there. At last the old one becomes its replica.
   */
  async takeOver(how: 'kill' | 'pause', ms: number, moved: () => void): Promise<void> {
    const [old, next] = [this.#primary, this.#replica];
    if (how === 'kill') {
      await old.kill();
    } else {
      old.pause();
    }
    await next.query('STOP SLAVE IO_THREAD');
    await until('that all was applied', () => isApplied(next), REPLICATES_MS);
    await next.query('STOP SLAVE');
    await next.query('RESET SLAVE ALL');
    [this.#primary, this.#replica] = [next, old];
    await this.#lead(false);
    moved();
    await sleep(ms / 2);
    old.resume();
    await sleep(ms / 2);
    await old.kill();
    await next.shutDown();
    old.copyFrom(next);
    await this.#begin();
  }

  async stop(): Promise<void> {
    await Promise.all([this.#primary.stop(), this.#replica.stop()]);
  }

  resume(): void {
    for (const server of [this.#primary, this.#replica]) {
      if (server.running) {
        server.resume();
      }
    }
  }

  /** Starts both, which have the same data. */
  async #begin(): Promise<void> {
    await Promise.all([this.#primary.start(), this.#replica.start()]);
    const [row] = await this.#primary.query<{ position: string }>('SELECT @@gtid_binlog_pos AS position');
    await this.#replica.query('RESET MASTER');
    await this.#replica.query('SET GLOBAL gtid_slave_pos = ?', [row?.position]);
    await this.#replica.query(
      `CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = ${this.#primary.port}, MASTER_USER = 'root', MASTER_CONNECT_RETRY = 1, MASTER_USE_GTID = slave_pos`,
    );
    await this.#replica.query('START SLAVE');
    await this.#lead(true);
    await until('that the replica confirms', () => this.#isConfirmed(), REPLICATES_MS);
  }

  /** Lets the primary write: each commit waits for the replica where there is one. */
  async #lead(isConfirmed: boolean): Promise<void> {
    await this.#primary.query(`SET GLOBAL rpl_semi_sync_master_enabled = ${isConfirmed ? 1 : 0}`);
    await this.#primary.query('SET GLOBAL read_only = 0');
  }

  async #isConfirmed(): Promise<boolean> {
    const [row] = await this.#primary.query<{ Value: string }>(`SHOW STATUS LIKE 'Rpl_semi_sync_master_clients'`);
    return Number(row?.Value) === 1;
  }
}

async function isApplied(replica: MySqlServer): Promise<boolean> {
  const [row] = await replica.query<{ Gtid_IO_Pos: string }>('SHOW SLAVE STATUS');
  const [applied] = await replica.query<{ position: string }>('SELECT @@gtid_slave_pos AS position');
  return row?.Gtid_IO_Pos === applied?.position;
}
