import type { Pool as MySqlPool } from 'mysql2';
import type { Pool as PostgresPool } from 'pg';
import { connectionOf } from '../../lib/mysql/connections/connection';
import { MySqlDialect } from '../../lib/mysql/mysql-dialect';
import { PostgresDialect } from '../../lib/postgres/postgres-dialect';
import type { Dialect, Sql } from '../../lib/sql/dialect';
import type { runStatement } from '../../lib/sql/statement';
import { DATABASE, MySqlServer } from '../support/mysql-server';
import { PostgresServer } from '../support/postgres-server';
import { until } from '../support/until';

/** A pool of connections to a real server, which its own dialect uses. */
export interface Pooled {
  readonly dialect: Dialect;
  /** A statement that lasts longer than any test. */
  readonly slow: Sql;
  /** Asks for a connection outside of a statement, where the store does. */
  readonly ask?: (limitMs: number) => Promise<unknown>;
  /** Takes a connection of the pool, and resolves to what gives it back. */
  take(): Promise<() => void>;
  /** The sessions in the server that run the slow statement. */
  sleeping(): Promise<readonly number[]>;
  /** All sessions in the server. */
  sessions(): Promise<readonly number[]>;
}

/** A server whose pools have so many connections at most. */
export interface PoolServer {
  pooled(most: number): Pooled;
  stop(): Promise<void>;
}

/** No statement of the tests is slower, and no connection that is idle ends by itself within that time. */
const LONG_S = 600;

export const POOL_SERVERS: Readonly<Record<string, () => Promise<PoolServer>>> = {
  async PostgreSQL() {
    const server = await PostgresServer.start();
    return { pooled: (most) => pooledBy(server, most), stop: () => server.stop() };
  },
  async MariaDB() {
    const server = await MySqlServer.start();
    const ids = async (where: string): Promise<number[]> =>
      (await server.query<{ id: number }>(`SELECT id FROM information_schema.processlist WHERE ${where}`)).map(({ id }) => id);
    return {
      pooled: (most) => {
        const pool: MySqlPool = server.pool({ connectionLimit: most, idleTimeout: LONG_S * 1_000 });
        return {
          dialect: new MySqlDialect(pool as never, DATABASE) as Dialect,
          slow: { sql: `SELECT sleep(${LONG_S})` },
          ask: (limitMs) => connectionOf(pool as never, limitMs),
          take: async () => {
            const connection = await pool.promise().getConnection();
            return () => connection.release();
          },
          sleeping: () => ids(`info = 'SELECT sleep(${LONG_S})'`),
          sessions: () => ids('true'),
        };
      },
      stop: () => server.stop(),
    };
  },
};

export function pooledBy(server: PostgresServer, most: number): Pooled {
  const pool: PostgresPool = server.pool({ max: most, idleTimeoutMillis: 0, connectionTimeoutMillis: 0 });
  const ids = async (where: string): Promise<number[]> =>
    (await server.query<{ id: number }>(`SELECT pid AS id FROM pg_stat_activity WHERE ${where}`)).map(({ id }) => id);
  return {
    dialect: new PostgresDialect(pool as never, 'none') as Dialect,
    // It ends well where it is cancelled: an error would end its connection by itself.
    slow: { sql: `DO $$ BEGIN PERFORM pg_sleep(${LONG_S}); EXCEPTION WHEN query_canceled THEN NULL; END $$`, values: [] },
    take: async () => {
      const client = await pool.connect();
      return () => client.release();
    },
    sleeping: () => ids("wait_event = 'PgSleep'"),
    sessions: () => ids('true'),
  };
}

type Run = typeof runStatement;

/** Whether the pool has its connection again, which it gave when whoever `asks` had given up. */
export async function comesBack({ take }: Pooled, asks: (limitMs: number) => Promise<unknown>, withinMs?: number): Promise<boolean> {
  const giveBack = await take();
  expect(await asks(50).catch((error: unknown) => error)).toBeInstanceOf(Error);
  giveBack();
  let isThere = false;
  void take().then((giveBackAgain) => {
    isThere = true;
    giveBackAgain();
  });
  return holds(() => isThere, withinMs);
}

/** Whether the session of a statement that was cancelled ends, and the pool has room for another one. */
export async function endsWhenCancelled(
  { dialect, slow, take, sleeping, sessions }: Pooled,
  run: Run,
  withinMs?: number,
): Promise<boolean> {
  const failing = run(dialect, slow, 500).catch((error: unknown) => error);
  let its: number | undefined;
  await until('that it sleeps', async () => ([its] = await sleeping())[0] !== undefined);
  expect(await failing).toBeInstanceOf(Error);
  const hasEnded = await holds(async () => !(await sessions()).includes(its as number), withinMs);
  (await take())();
  return hasEnded;
}

/** Whether it holds at last, or within so many milliseconds. */
function holds(condition: () => boolean | Promise<boolean>, withinMs?: number): Promise<boolean> {
  return until('it', condition, withinMs).then(
    () => true,
    () => false,
  );
}
