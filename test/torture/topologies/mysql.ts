import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool, PoolConnection } from 'mysql2/promise';
import { DONE_MS } from '../../../lib/kit/protocol.js';
import { MySqlLockStore } from '../../../lib/mysql/index.js';
import { MySqlKeys } from '../../../lib/mysql/mysql-keys.js';
import { NOW, QUEUE_MS } from '../../../lib/mysql/tables.js';
import { MySqlPair } from '../../support/mysql-pair.js';
import { PreparedTexts } from '../../support/prepared-texts.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { lockedRowsOf, type FaultName } from '../faults.js';
import { now, type HistoryFile } from '../history.js';
import type { Step } from '../plan.js';
import { FAULTS_ANYWHERE, type Taken, type Topology } from './topology.js';

/** Longer than any lease of a run, in milliseconds. */
const LONG_MS = 10_000;

/** Which part of a crash the server is away; it also takes a while to start. */
const AWAY = 0.25;

const ROWS = new MySqlKeys('lock');
/** The tables of locks. A key has its row in one of them. */
const LEASES = MySqlPair.databases.map((database) => `${database}.distributed_lock_lease`);

/** How many connections each pool of a worker may have. */
export const POOL_MAX = 10;

/** How often the connections are counted, in milliseconds. */
const LOOK_MS = 50;

/**
 * Two databases of a primary and its replica, which confirms every commit: neither a crash nor a failover loses
 * anything. There are few keys, so that processes hand over several at a time all the time.
 */
export class MySql implements Topology {
  readonly faults: readonly FaultName[] = [
    ...FAULTS_ANYWHERE, 'nest', 'killClients', 'recover', 'erase', 'lockRow', 'standby', 'readOnly', 'failover', 'depose',
  ]; // prettier-ignore
  readonly spare = 0;
  readonly keepsOrder = true;
  readonly isShared = false;
  readonly busyKeys = 8;
  readonly releaseText = ['SET owner = NULL, holds = NULL', '.distributed_lock_release_', '.distributed_lock_exchange_'];
  readonly renewText = '.distributed_lock_renew_';
  readonly #pair: MySqlPair;
  /** Leads to the primary, whichever server that is. */
  readonly #way: TcpProxy;
  readonly #proxies: TcpProxy[];
  readonly #pools: readonly Pool[];
  #strikes: Promise<unknown> = Promise.resolve();
  #write: HistoryFile['write'] = () => undefined;

  private constructor(pair: MySqlPair, way: TcpProxy) {
    this.#pair = pair;
    this.#way = way;
    this.#proxies = [way];
    this.#pools = MySqlPair.databases.map((database) => pair.primary.pool({ port: way.port, database }).promise());
    // Before the servers are killed: processes that are stopped would never notice.
    process.prependListener('exit', this.#wake);
  }

  static async start(): Promise<MySql> {
    const pair = await MySqlPair.start();
    const own = new MySql(pair, await TcpProxy.start(pair.primary.port));
    // Defective workers have procedures of their own.
    await own.store().ensureSchema();
    return own;
  }

  async link(): ReturnType<Topology['link']> {
    const proxy = await TcpProxy.start(this.#pair.primary.port, () => new PreparedTexts());
    this.#proxies.push(proxy);
    const urls = MySqlPair.databases.map((database) => `mysql://${MySqlPair.user}@127.0.0.1:${proxy.port}/${database}`);
    return { source: { kind: 'mysql', urls }, proxies: [proxy] };
  }

  store(): MySqlLockStore {
    return new MySqlLockStore(this.#pools);
  }

  /** One after the other: nobody knows how long a server takes to start. */
  strike(step: Step): Promise<Taken | void> {
    if (step.fault === 'lockRow') {
      return this.#lockRow(step);
    }
    const struck = this.#strikes.then(() => this.#strike(step));
    this.#strikes = struck.catch(() => undefined);
    return struck;
  }

  async #strike({ fault, target, ms }: Step): Promise<Taken | void> {
    const { primary } = this.#pair;
    switch (fault) {
      case 'stall':
        primary.pause();
        await sleep(ms);
        primary.resume();
        break;
      case 'recover':
        await this.#pair.recover(ms * AWAY);
        break;
      case 'killClients':
        await primary.endConnections(MySqlPair.user);
        break;
      case 'readOnly':
        await primary.query('SET GLOBAL read_only = 1');
        await sleep(ms);
        await primary.query('SET GLOBAL read_only = 0');
        break;
      case 'standby':
        await this.#awaitReplica(ms);
        break;
      case 'failover':
      case 'depose':
        await this.#pair.takeOver(fault === 'depose' ? 'pause' : 'kill', ms / 2, () => this.#lead());
        break;
      case 'erase':
        return this.#take(target, (lease) => `DELETE FROM ${lease} WHERE name = ?`);
      default:
        throw new Error(`MySQL cannot have the fault '${fault}'. Take it out of the faults of its topology.`);
    }
  }

  /** New connections lead to the new primary; those that stand stay where they are. */
  #lead(): void {
    for (const proxy of this.#proxies) {
      proxy.target = this.#pair.primary.port;
    }
    // Whoever looks at the locks has to see what is true.
    this.#way.cut();
  }

  /** Somebody has locked the row of a key, and does not end the transaction. */
  #lockRow({ target, ms }: Step): Promise<Taken | void> {
    return this.#inTransaction(async (connection) => {
      const names = lockedRowsOf(target).map((key) => ROWS.row(key));
      let count = 0;
      for (const lease of LEASES) {
        const [rows] = await connection.query(`SELECT name FROM ${lease} WHERE name IN (?) ORDER BY name FOR UPDATE`, [names]);
        count += (rows as unknown[]).length;
      }
      if (count === 0) {
        return { outcome: 'nothing' };
      }
      await sleep(ms);
    });
  }

  /** Commits wait for a replica that is stopped. */
  async #awaitReplica(ms: number): Promise<void> {
    const { primary, replica } = this.#pair;
    const since = now();
    const most = this.#proxies.length * MySqlPair.databases.length * POOL_MAX;
    let count = 0;
    replica.pause();
    try {
      while (now() < since + ms) {
        count = Math.max(count, await primary.countConnections(MySqlPair.user));
        await sleep(LOOK_MS);
      }
    } finally {
      replica.resume();
    }
    this.#write({ op: 'connections', phase: 'info', since, count, most });
  }

  record(write: HistoryFile['write']): void {
    this.#write = write;
  }

  delete(key: string): Promise<Taken> {
    return this.#take(key, (lease) => `UPDATE ${lease} SET owner = NULL, holds = NULL, turn = NULL, ends = ${NOW} WHERE name = ?`);
  }

  pings(): readonly (() => Promise<unknown>)[] {
    return [() => this.#pair.primary.query('SELECT 1'), () => this.#pair.replica.query('SELECT 1')];
  }

  async withoutExpiry(): Promise<string[]> {
    const rows = await this.#stored(`owner IS NOT NULL AND ends > ${NOW} + ${LONG_MS} * 1000`);
    return rows.map((row) => `${row} is held for longer than any lease`);
  }

  /** Rows stay, and with them the fences; locks, reservations, queues and marks do not. */
  async orphans(): Promise<string[]> {
    const held = await this.#stored(`ends > ${NOW}`);
    const queues = await this.#stored(`queue IS NOT NULL AND queue_ends > ${NOW} + ${QUEUE_MS} * 1000`);
    const marks = await this.#query(
      MySqlPair.databases,
      (name) => `SELECT 1 FROM ${name}.distributed_lock_done WHERE ends > ${NOW} + ${DONE_MS} * 1000`,
    );
    return [
      ...held.map((row) => `${row} is still there`),
      ...queues.map((row) => `the queue of ${row} stays`),
      ...marks.map(() => `a mark stays for longer than ${DONE_MS} ms`),
    ];
  }

  async stop(): Promise<void> {
    process.removeListener('exit', this.#wake);
    await this.#pair.stop();
    await this.#way.stop();
  }

  readonly #wake = (): void => this.#pair.resume();

  async #stored(condition: string): Promise<string[]> {
    const sqlFor = (lease: string): string => `SELECT concat_ws(' ', name, owner, turn) AS text FROM ${lease} WHERE ${condition}`;
    const rows = await this.#query<{ text: Buffer }>(LEASES, sqlFor);
    return rows.map(({ text }) => text.toString());
  }

  async #query<Row>(places: readonly string[], sqlFor: (place: string) => string): Promise<Row[]> {
    return (await Promise.all(places.map((place) => this.#pair.primary.query<Row>(sqlFor(place))))).flat();
  }

  /** Ends or deletes the row of a key by a statement. */
  #take(key: string, sqlFor: (lease: string) => string): Promise<Taken> {
    const name = ROWS.row(key);
    return this.#inTransaction(async (connection) => {
      for (const lease of LEASES) {
        const [rows] = await connection.query(
          `SELECT CASE WHEN owner IS NOT NULL AND ends > ${NOW} THEN fence END AS fence FROM ${lease} WHERE name = ? FOR UPDATE`,
          [name],
        );
        const [row] = rows as { fence: number | null }[];
        if (row) {
          await connection.query(sqlFor(lease), [name]);
          return row.fence ? { fence: row.fence } : { outcome: 'nothing' };
        }
      }
      return { outcome: 'nothing' };
    });
  }

  /** It ends with its connection. */
  async #inTransaction<T>(body: (connection: PoolConnection) => Promise<T>): Promise<T> {
    const connection = await (this.#pools[0] as Pool).getConnection();
    connection.on('error', () => undefined);
    try {
      await connection.query('START TRANSACTION');
      const result = await body(connection);
      await connection.query('COMMIT');
      return result;
    } finally {
      connection.destroy();
    }
  }
}
