import { setTimeout as sleep } from 'node:timers/promises';
import { DATABASE, IS_MYSQL, MySqlServer } from './mysql-server';
import { freePort } from './redis-server';
import { until } from './until';

/** The user of the code under test, which has no rights beyond the two databases. */
const USER = 'app';
const OTHER = `${DATABASE}_too`;

/** The words of the two products for how a replica follows and confirms. */
const { words, settings, follow, APPLIED } = IS_MYSQL
  ? {
      words: { primary: 'source', replica: 'replica' },
      settings: [
        '--gtid-mode=ON',
        '--enforce-gtid-consistency=ON',
        '--log-replica-updates',
        '--skip-replica-start',
        '--plugin-load-add=semisync_source.so;semisync_replica.so',
      ],
      // The applied changes are in the files of the replica, which are a copy of those of the primary.
      follow: (port: number): string[] => [
        `CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = ${port}, SOURCE_USER = 'root', SOURCE_CONNECT_RETRY = 1, SOURCE_RETRY_COUNT = 86400, SOURCE_AUTO_POSITION = 1`,
      ],
      APPLIED: 'SELECT gtid_subset(?, @@GLOBAL.gtid_executed) AS applied',
    }
  : {
      words: { primary: 'master', replica: 'slave' },
      settings: ['--log-slave-updates', '--skip-slave-start'],
      follow: (port: number, position: string): string[] => [
        'RESET MASTER',
        `SET GLOBAL gtid_slave_pos = '${position}'`,
        `CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = ${port}, MASTER_USER = 'root', MASTER_CONNECT_RETRY = 1, MASTER_USE_GTID = slave_pos`,
      ],
      APPLIED: 'SELECT ? = @@gtid_slave_pos AS applied',
    };

/** Commits wait for the replica, before anybody sees what they changed, and for as long as it takes. */
const SETTINGS = [
  '--log-bin=bin',
  '--relay-log=relay',
  '--binlog-format=ROW',
  '--read-only=1',
  ...settings,
  `--rpl-semi-sync-${words.replica}-enabled=1`,
  `--rpl-semi-sync-${words.primary}-wait-point=AFTER_SYNC`,
  `--rpl-semi-sync-${words.primary}-timeout=86400000`,
];

/** How long a machine that has much else to do may take to replicate again, in milliseconds. */
const REPLICATES_MS = 60_000;

/** A primary and a replica, which confirms all commits. */
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

  /** Has the replica follow the primary again, once it was started. */
  async follow(): Promise<void> {
    await this.#replica.query(`START ${words.replica}`);
  }

  /** Kills the primary, and starts it again a while later. */
  async recover(awayMs: number): Promise<void> {
    await this.#primary.kill();
    await sleep(awayMs);
    await this.#primary.start();
    await this.#lead(true);
  }

  /**
   * The replica becomes the primary, because the primary was killed, or stopped for a while: then the old one goes on
   * and answers whoever is still connected, for `ms`. `moved` is called when the new primary is there. At last the old
   * one becomes its replica.
   */
  async takeOver(how: 'kill' | 'pause', ms: number, moved: () => void): Promise<void> {
    const [old, next] = [this.#primary, this.#replica];
    if (how === 'kill') {
      await old.kill();
    } else {
      old.pause();
    }
    await next.query(`STOP ${words.replica} IO_THREAD`);
    await until('that all was applied', () => isApplied(next), REPLICATES_MS);
    await next.query(`STOP ${words.replica}`);
    await next.query(`RESET ${words.replica} ALL`);
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
    const position = IS_MYSQL ? '' : await this.#primary.query<{ position: string }>('SELECT @@gtid_binlog_pos AS position').then(([row]) => row?.position ?? ''); // prettier-ignore
    for (const sql of follow(this.#primary.port, position)) {
      await this.#replica.query(sql);
    }
    await this.follow();
    await this.#lead(true);
    await until('that the replica confirms', () => this.#isConfirmed(), REPLICATES_MS);
  }

  /** Lets the primary write: each commit waits for the replica where there is one. */
  async #lead(isConfirmed: boolean): Promise<void> {
    await this.#primary.query(`SET GLOBAL rpl_semi_sync_${words.primary}_enabled = ${isConfirmed ? 1 : 0}`);
    await this.#primary.query('SET GLOBAL read_only = 0');
  }

  async #isConfirmed(): Promise<boolean> {
    const [row] = await this.#primary.query<{ Value: string }>(`SHOW STATUS LIKE 'Rpl_semi_sync_${words.primary}_clients'`);
    return Number(row?.Value) === 1;
  }
}

async function isApplied(replica: MySqlServer): Promise<boolean> {
  const [row = {}] = await replica.query<{ Gtid_IO_Pos?: string; Retrieved_Gtid_Set?: string }>(`SHOW ${words.replica} STATUS`);
  const [answer] = await replica.query<{ applied: number }>(APPLIED, [row.Gtid_IO_Pos ?? row.Retrieved_Gtid_Set]);
  return answer?.applied === 1;
}
