import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import { DONE_MS, QUEUE_MS } from '../../../lib/kit/protocol.js';
import { interval } from '../../../lib/postgres/functions/sql-function.js';
import { PostgresLockStore } from '../../../lib/postgres/index.js';
import { PostgresKeys } from '../../../lib/postgres/postgres-keys.js';
import { PostgresServer } from '../../support/postgres-server.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { lockedRowsOf, type FaultName } from '../faults.js';
import { now, type HistoryFile } from '../history.js';
import type { Step } from '../plan.js';
import { FAULTS_ANYWHERE, type Taken, type Topology } from './topology.js';

/** Longer than any lease of a run, in milliseconds. */
const LONG_MS = 10_000;

/** Which part of a crash the server is away; it also takes a while to start. */
const AWAY = 0.25;

const ROWS = new PostgresKeys('lock');

/** How many connections the pool of a worker may have; one more listens. */
const POOL_MAX = 10;

/** How often the connections are counted, in milliseconds. */
const LOOK_MS = 50;
const COUNT = `
SELECT count(*)::int FROM pg_stat_activity WHERE backend_type = 'client backend' AND application_name NOT IN ('observer', 'stranger')`;

/** Ends a lock and leaves the rest as it is: the queue, the fence. */
const END = `
UPDATE distributed_lock.lease SET owner = NULL, holds = NULL, processes = NULL, ends = clock_timestamp()
WHERE key = $1 AND owner IS NOT NULL AND ends > clock_timestamp() RETURNING fence`;

const ERASE = `
DELETE FROM distributed_lock.lease WHERE key = $1
RETURNING CASE WHEN owner IS NOT NULL AND ends > clock_timestamp() THEN fence END AS fence`;

/** One server, which writes down what it keeps before it answers: a crash loses nothing. */
export class Postgres implements Topology {
  readonly faults: readonly FaultName[] = [...FAULTS_ANYWHERE, 'nest', 'killClients', 'recover', 'erase', 'lockRow', 'standby'];
  readonly spare = 0;
  readonly keepsOrder = true;
  readonly isShared = true;
  readonly releaseText = ['.release(', '.exchange('];
  readonly renewText = '.renew(';
  readonly #server: PostgresServer;
  readonly #pool: Pool;
  /** A pool of clients that are no workers, and know nothing of locks. */
  readonly #strangers: Pool;
  #strikes: Promise<unknown> = Promise.resolve();
  #links = 0;
  #write: HistoryFile['write'] = () => undefined;

  private constructor(server: PostgresServer) {
    this.#server = server;
    this.#pool = server.pool();
    this.#strangers = server.pool({ application_name: 'stranger' });
    // Before the server is killed: those of its processes that are stopped would never notice.
    process.prependListener('exit', this.#wake);
  }

  static async start(): Promise<Postgres> {
    return new Postgres(await PostgresServer.start());
  }

  async link(): ReturnType<Topology['link']> {
    const proxy = await TcpProxy.start(this.#server.port);
    this.#links++;
    return { source: { kind: 'postgres', url: this.#server.urlFor('postgres', proxy.port) }, proxies: [proxy] };
  }

  store(): PostgresLockStore {
    return new PostgresLockStore(this.#pool);
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
    switch (fault) {
      case 'stall':
        this.#server.pause();
        await sleep(ms);
        this.#server.resume();
        break;
      case 'recover':
        await this.#server.kill();
        await sleep(ms * AWAY);
        await this.#server.start();
        break;
      case 'killClients':
        await this.#server.terminateBackends(`application_name <> 'stranger'`);
        break;
      case 'standby':
        await this.#awaitStandby(ms);
        break;
      case 'erase':
        return this.#take(ERASE, target);
      default:
        throw new Error(`PostgreSQL cannot have the fault '${fault}'. Take it out of the faults of its topology.`);
    }
  }

  /** Somebody has locked the row of a key, and does not end the transaction. */
  async #lockRow({ target, ms }: Step): Promise<Taken | void> {
    const client = await this.#strangers.connect();
    client.on('error', () => undefined);
    try {
      await client.query('BEGIN');
      const { rowCount } = await client.query('SELECT FROM distributed_lock.lease WHERE key = ANY ($1) ORDER BY key FOR UPDATE', [
        lockedRowsOf(target).map((key) => ROWS.row(key)),
      ]);
      if (rowCount === 0) {
        return { outcome: 'nothing' };
      }
      await sleep(ms);
    } finally {
      // Its transaction ends with it.
      client.release(true);
    }
  }

  async #awaitStandby(ms: number): Promise<void> {
    const since = now();
    const most = (this.#links + 1) * (POOL_MAX + 1);
    let count = 0;
    // Commits that wait take all connections that there are, also of clients that were killed: one is kept to end it.
    const client = await this.#strangers.connect();
    client.on('error', () => undefined);
    await client.query(`ALTER SYSTEM SET synchronous_standby_names = 'gone'`);
    try {
      await client.query('SELECT pg_reload_conf()');
      while (now() < since + ms) {
        const { rows } = await client.query<{ count: number }>(COUNT);
        count = Math.max(count, rows[0]?.count ?? 0);
        await sleep(LOOK_MS);
      }
    } finally {
      // A server that was killed meanwhile ended that connection, and all others with it.
      await commitAlone(client).catch(() => commitAlone(this.#server));
      client.release(true);
    }
    this.#write({ op: 'connections', phase: 'info', since, count, most });
  }

  record(write: HistoryFile['write']): void {
    this.#write = write;
  }

  delete(key: string): Promise<Taken> {
    return this.#take(END, key);
  }

  pings(): readonly (() => Promise<unknown>)[] {
    return [() => this.#strangers.query('SELECT 1')];
  }

  async withoutExpiry(): Promise<string[]> {
    const rows = await this.#stored(`owner IS NOT NULL AND ends > clock_timestamp() + $1 * interval '1 millisecond'`, LONG_MS);
    return rows.map((row) => `${row} is held for longer than any lease`);
  }

  /** Rows stay, and with them the fences; locks, reservations, queues and marks do not. */
  async orphans(): Promise<string[]> {
    const held = await this.#stored(`ends > clock_timestamp()`);
    const queues = await this.#stored(`queue IS NOT NULL AND queue_ends > clock_timestamp() + ${interval(QUEUE_MS)}`);
    const marks = await this.#server.query(`SELECT FROM distributed_lock.done WHERE ends > clock_timestamp() + ${interval(DONE_MS)}`);
    return [
      ...held.map((row) => `${row} is still there`),
      ...queues.map((row) => `the queue of ${row} stays`),
      ...marks.map(() => `a mark stays for longer than ${DONE_MS} ms`),
    ];
  }

  stop(): Promise<void> {
    process.removeListener('exit', this.#wake);
    return this.#server.stop();
  }

  readonly #wake = (): void => {
    if (this.#server.running) {
      this.#server.resume();
    }
  };

  async #stored(condition: string, ...values: unknown[]): Promise<string[]> {
    const rows = await this.#server.query<{ lock: string }>(
      `SELECT concat_ws(' ', key, owner, turn) AS lock FROM distributed_lock.lease WHERE ${condition}`,
      values,
    );
    return rows.map(({ lock }) => lock);
  }

  async #take(sql: string, key: string): Promise<Taken> {
    const [row] = await this.#server.query<{ fence: string | null }>(sql, [ROWS.row(key)]);
    return row?.fence ? { fence: Number(row.fence) } : { outcome: 'nothing' };
  }
}

/** From now on, commits wait for no standby. */
async function commitAlone(server: { query(text: string): Promise<unknown> }): Promise<void> {
  await server.query('ALTER SYSTEM RESET synchronous_standby_names');
  await server.query('SELECT pg_reload_conf()');
}
