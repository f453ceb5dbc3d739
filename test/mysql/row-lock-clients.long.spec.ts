import { setTimeout as sleep } from 'node:timers/promises';
import 'reflect-metadata';
import { drizzle } from 'drizzle-orm/mysql2';
import createKnex from 'knex';
import { createPool, type Connection, type Pool } from 'mysql2';
import { inspect } from 'node:util';
import { DataSource } from 'typeorm';
import { LockConfigurationError, LockKeyError, LockNotAcquiredError } from '../../lib/core/words/errors';
import { rowLockSql, withRowLock, type RowLockClient } from '../../lib/mysql/index';
import { DATABASE, IS_MYSQL, modesOf, MySqlServer } from '../support/mysql-server';
import { saying } from '../support/saying';
import { TcpProxy } from '../support/tcp-proxy';
import { until } from '../support/until';
import { inTransaction } from './in-transaction';
import { creditByDrizzle, creditByKnex, creditByMysql2, creditByTypeorm, drizzleRows, knexRows, makeTable } from './libraries';

let server: MySqlServer;
let pool: Pool;

beforeAll(async () => {
  server = await MySqlServer.start();
  pool = server.pool();
  await pool.promise().query(rowLockSql());
});
afterAll(() => server.stop());

const never = (): never => {
  throw new Error('The body ran.');
};

/** A connection with callbacks. */
function callbacks(): Promise<Connection & { release(): void }> {
  return new Promise((resolve, reject) => {
    pool.getConnection((error, connection) => (error ? reject(error) : resolve(connection)));
  });
}

describe('outside of a transaction', () => {
  const refused = {
    code: 'LOCK_CONFIGURATION',
    detail: expect.stringContaining('Pass the connection on which BEGIN was called, not a pool.'),
  };

  test('a pool is refused', async () => {
    await expect(withRowLock(pool, 'k', never)).rejects.toMatchObject(refused);
    await expect(withRowLock(pool.promise(), 'k', never)).rejects.toMatchObject(refused);
  });

  test('a connection is refused, also before and after a transaction of its own', async () => {
    const connection = await pool.promise().getConnection();
    await expect(withRowLock(connection, 'k', never)).rejects.toMatchObject(refused);
    await connection.query('BEGIN');
    expect(await withRowLock(connection, 'k', () => 'inside')).toBe('inside');
    await connection.query('COMMIT');
    await expect(withRowLock(connection, 'k', never)).rejects.toMatchObject(refused);
    connection.release();
  });

  test('a connection without autocommit is always inside one', async () => {
    const connection = await server.pool({ connectionLimit: 1 }).promise().getConnection();
    await connection.query('SET autocommit = 0');
    expect(await withRowLock(connection, 'k', () => 'inside')).toBe('inside');
    const other = inTransaction(pool, (one) => withRowLock(one, 'k', never, { wait: 0 }));
    await expect(other).rejects.toThrow(LockNotAcquiredError);
    await connection.query('COMMIT');
    connection.release();
  });

  test('what is no connection at all is refused', async () => {
    for (const client of [undefined, null, {}, 'mysql://127.0.0.1']) {
      await expect(withRowLock(client as unknown as RowLockClient, 'k', never)).rejects.toThrow(
        'the connection has no query(text, values)',
      );
    }
  });
});

describe('what the database says', () => {
  test('a transaction that is read-only is refused', async () => {
    const call = inTransaction(pool, (connection) => withRowLock(connection, 'k', never), 'START TRANSACTION READ ONLY');
    await expect(call).rejects.toThrow(saying('read-only'));
    await expect(call).rejects.toThrow(LockConfigurationError);
  });

  test('a missing table, and a missing database, are named with their cures', async () => {
    await server.query('CREATE DATABASE bare');
    for (const [url, cure] of [
      [`mysql://root@127.0.0.1:${server.port}/bare`, 'Run what rowLockSql() returns.'],
      [`mysql://root@127.0.0.1:${server.port}`, 'Name one when you connect.'],
    ] as const) {
      const other = createPool(url);
      const call = inTransaction(other, (connection) => withRowLock(connection, 'k', never));
      await expect(call).rejects.toThrow(saying(cure));
      await expect(call).rejects.toThrow(LockConfigurationError);
      await other.promise().end();
    }
  });

  test('the smallest rights suffice, and the error without them names them', async () => {
    await server.query("CREATE USER clerk@'%'");
    await server.query(`CREATE TABLE ${DATABASE}.open_to_clerks (id INTEGER)`);
    await server.query(`GRANT SELECT ON ${DATABASE}.open_to_clerks TO clerk@'%'`);
    const clerks = server.pool({ user: 'clerk' });
    const call = () => inTransaction(clerks, (connection) => withRowLock(connection, 'of clerk', () => 'inside'));
    await expect(call()).rejects.toThrow(saying('Grant SELECT, INSERT and UPDATE on the table distributed_lock_row.'));
    await expect(call()).rejects.toThrow(LockConfigurationError);
    await server.query(`GRANT SELECT, INSERT, UPDATE ON ${DATABASE}.distributed_lock_row TO clerk@'%'`);
    expect(await call()).toBe('inside');
  });

  test('a connection that breaks while it waits is an error of the store, which nobody answered', async () => {
    const proxy = await TcpProxy.start(server.port);
    const connection = await server.pool({ port: proxy.port }).promise().getConnection();
    await connection.query('BEGIN');
    await inTransaction(pool, (holder) =>
      withRowLock(holder, 'k', async () => {
        const refused = expect(withRowLock(connection, 'k', never, { wait: '30s' })).rejects.toMatchObject({
          code: 'LOCK_STORE',
          unknown: true,
        });
        await until('a transaction that waits', async () => {
          const sql = "SELECT 1 FROM information_schema.processlist WHERE info LIKE 'INSERT INTO distributed_lock_row%'";
          return (await server.query(sql)).length === 1;
        });
        proxy.cut();
        await refused;
      }),
    );
    connection.destroy();
    await proxy.stop();
  });
});

describe('keys', () => {
  const KEYS = [
    'a',
    'A',
    'a ',
    '%',
    '\0',
    'ü',
    'u\u0308',
    "'; DROP TABLE distributed_lock_row; --",
    '"',
    '\\',
    "\\'",
    '?',
    ':a',
    'NULL',
    '💰',
  ];
  KEYS.push('x'.repeat(1_024), '語'.repeat(341), '\\'.repeat(1_023));

  test.each([...modesOf(['', 'NO_BACKSLASH_ESCAPES', 'ANSI', 'ORACLE', 'EMPTY_STRING_IS_NULL']), 'HIGH_NOT_PRECEDENCE'])(
    'of all kinds are apart from each other, with the sql_mode "%s"',
    async (mode) => {
      const nested = (client: RowLockClient, [key, ...rest]: readonly string[]): Promise<number> =>
        withRowLock(client, key as string, async () => 1 + (rest.length > 0 ? await nested(client, rest) : 0), { wait: 0 });
      const connection = await server.pool({ connectionLimit: 1 }).promise().getConnection();
      await connection.query('DELETE FROM distributed_lock_row');
      await connection.query(`SET SESSION sql_mode = '${mode}'`);
      await connection.query('START TRANSACTION');
      expect(await nested(connection, KEYS)).toBe(KEYS.length);
      expect(await withRowLock(connection, KEYS, () => 'all')).toBe('all');
      await connection.query('COMMIT');
      connection.release();
      const rows = await server.query<{ name: Buffer }>(`SELECT name FROM ${DATABASE}.distributed_lock_row`);
      expect(rows.map(({ name }) => name.toString()).toSorted()).toEqual(KEYS.toSorted());
    },
  );

  test('that no store could keep, and wrong options, are refused before the database is asked', async () => {
    const asked: string[] = [];
    const client: RowLockClient = { query: async (text) => void asked.push(text) };
    for (const key of ['', 'x'.repeat(1_025), '\ud800', ['a', ''], [], undefined as unknown as string[]]) {
      await expect(withRowLock(client, key, never)).rejects.toThrow(LockKeyError);
    }
    await expect(withRowLock(client, 'k', never, { wait: -1 })).rejects.toThrow('withRowLock: wait is -1');
    await expect(withRowLock(client, 'k', undefined as unknown as () => void)).rejects.toThrow('there is no function to run');
    expect(asked).toEqual([]);
  });
});

interface Library {
  /** Runs something in a transaction. */
  transaction<T>(body: (rows: RowLockClient) => Promise<T>): Promise<T>;
  /** A client outside of a transaction. */
  readonly outside: RowLockClient;
  end(): Promise<unknown>;
}

const LIBRARIES: Readonly<Record<string, () => Promise<Library>>> = {
  'mysql2 with promises': async () => ({
    transaction: (body) => inTransaction(pool, body),
    outside: pool.promise(),
    end: async () => undefined,
  }),
  'mysql2 with callbacks': async () => ({
    transaction: async (body) => {
      const connection = await callbacks();
      await connection.promise().beginTransaction();
      try {
        return await body(connection);
      } finally {
        await connection.promise().rollback();
        connection.release();
      }
    },
    outside: pool,
    end: async () => undefined,
  }),
  'TypeORM, by its EntityManager': async () => {
    const source = await dataSource();
    return { transaction: (body) => source.transaction(body), outside: source, end: () => source.destroy() };
  },
  'TypeORM, by its QueryRunner': async () => {
    const source = await dataSource();
    return {
      transaction: async (body) => {
        const runner = source.createQueryRunner();
        await runner.startTransaction();
        try {
          return await body(runner);
        } finally {
          await runner.rollbackTransaction();
          await runner.release();
        }
      },
      outside: source.manager,
      end: () => source.destroy(),
    };
  },
  knex: async () => {
    const { host, port, user } = server.address;
    const knex = createKnex({ client: 'mysql2', connection: { host, port, user, database: DATABASE } as object });
    return {
      transaction: (body) => knex.transaction((trx) => body(knexRows(trx))),
      outside: knexRows(knex as never),
      end: () => knex.destroy(),
    };
  },
  drizzle: async () => {
    const database = drizzle(pool.promise() as never);
    return {
      transaction: (body) => database.transaction((tx) => body(drizzleRows(tx as never))),
      outside: drizzleRows(database as never),
      end: async () => undefined,
    };
  },
};

function dataSource(): Promise<DataSource> {
  return new DataSource({ type: 'mysql', url: `mysql://root@127.0.0.1:${server.port}/${DATABASE}` }).initialize();
}

describe.each(Object.keys(LIBRARIES))('withRowLock over %s', (name) => {
  let library: Library;

  beforeAll(async () => {
    library = await (LIBRARIES[name] as () => Promise<Library>)();
  });
  afterAll(() => library.end());

  test('runs alone, and is busy for others, whose error carries no key of the statement', async () => {
    await library.transaction((rows) =>
      withRowLock(rows, ['a', `of ${name}`], async () => {
        for (const wait of [0, '1s']) {
          const other = library.transaction((waiting) => withRowLock(waiting, `of ${name}`, never, { wait }));
          const refusal: unknown = await other.catch((error: unknown) => error);
          expect(refusal).toBeInstanceOf(LockNotAcquiredError);
          expect(refusal).toMatchObject({ reason: 'busy', cause: { errno: IS_MYSQL && wait === 0 ? 3572 : 1205 } });
          const { cause } = refusal as Error;
          expect(inspect(cause, { depth: 9 })).not.toMatch(/distributed_lock_row|of (mysql2|TypeORM|knex|drizzle)/);
        }
      }),
    );
    expect(await library.transaction((rows) => withRowLock(rows, `of ${name}`, () => 'free', { wait: 0 }))).toBe('free');
  });

  test('finds a snapshot from before the lock', async () => {
    const call = library.transaction((rows) =>
      withRowLock(rows, 'a', async () => {
        await inTransaction(pool, (other) => withRowLock(other, 'b', () => undefined));
        await withRowLock(rows, 'b', never);
      }),
    );
    await expect(call).rejects.toThrow(saying('has read something before the lock'));
  });

  test('is refused outside of a transaction', async () => {
    await expect(withRowLock(library.outside, 'k', never)).rejects.toBeInstanceOf(LockConfigurationError);
    await expect(withRowLock(library.outside, 'k', never)).rejects.toThrow(saying(/not inside a transaction/));
  });
});

test('the examples of the page run at READ COMMITTED, one after the other', async () => {
  await makeTable(pool.promise());
  await pool.promise().query('CREATE TABLE balances (customer_id INTEGER PRIMARY KEY, amount INTEGER NOT NULL)');
  await pool.promise().query('INSERT INTO balances VALUES (7, 0)');
  const source = await dataSource();
  const knex = createKnex({ client: 'mysql2', connection: { ...server.address, database: DATABASE } as object });
  let credits: Promise<unknown> | undefined;
  await inTransaction(pool, (holder) =>
    withRowLock(holder, 'balance:7', async () => {
      credits = Promise.all([
        creditByMysql2(pool.promise(), 7, 1),
        creditByTypeorm(source, 7, 10),
        creditByKnex(knex, 7, 100),
        creditByDrizzle(drizzle(pool.promise() as never), 7, 1_000),
      ]);
      credits.catch(() => undefined);
      await until('four transactions that wait', async () => {
        // InnoDB keeps what it shows there for as long as it is asked more often than every 100 ms.
        await sleep(150);
        const waiting = "trx_state = 'LOCK WAIT' AND trx_isolation_level = 'READ COMMITTED'";
        return (await server.query(`SELECT 1 FROM information_schema.innodb_trx WHERE ${waiting}`)).length === 4;
      });
    }),
  );
  await credits;
  expect(await server.query(`SELECT amount FROM ${DATABASE}.balances`)).toEqual([{ amount: 1_111 }]);
  await source.destroy();
  await knex.destroy();
});
