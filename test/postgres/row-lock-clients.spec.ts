import { PGlite } from '@electric-sql/pglite';
import { inspect } from 'node:util';
import type { Pool } from 'pg';
import { LockConfigurationError, LockKeyError, LockStoreError } from '../../lib/core/words/errors';
import { PostgresLockStore } from '../../lib/postgres/postgres-lock-store';
import { withRowLock, type RowLockClient } from '../../lib/postgres/row-lock/row-lock';
import { rowLockSql } from '../../lib/postgres/row-lock/row-lock-table';
import { inTransaction } from '../support/in-transaction';
import { PostgresServer } from '../support/postgres-server';
import { Random } from '../support/random';
import { TcpProxy } from '../support/tcp-proxy';
import { until } from '../support/until';
import { saying } from '../support/saying';

let server: PostgresServer;
let pool: Pool;

beforeAll(async () => {
  server = await PostgresServer.start();
  await server.query(rowLockSql());
  pool = server.pool();
});
afterAll(() => server.stop());

const never = (): never => {
  throw new Error('The body ran.');
};

/** Without what a client of pg knows of its transaction: what other libraries offer. */
function plain(client: RowLockClient): RowLockClient {
  return { query: (text, values) => client.query(text, values) };
}

describe('outside of a transaction', () => {
  const refused = {
    code: 'LOCK_CONFIGURATION',
    detail: expect.stringContaining('Pass the client on which BEGIN was called, not a pool.'),
  };

  test('a pool is refused', async () => {
    await expect(withRowLock(pool, 'k', never)).rejects.toMatchObject(refused);
  });

  test('a client is refused, also before and after a transaction of its own', async () => {
    const client = await pool.connect();
    for (const one of [client, plain(client)]) {
      await expect(withRowLock(one, 'k', never)).rejects.toMatchObject(refused);
      await client.query('BEGIN');
      expect(await withRowLock(one, 'k', () => 'inside')).toBe('inside');
      await client.query('COMMIT');
      await expect(withRowLock(one, 'k', never)).rejects.toMatchObject(refused);
    }
    client.release();
  });

  test('a client is not refused where BEGIN went out just before, or together with the first statement', async () => {
    const client = await pool.connect();
    for (const one of [client, plain(client)]) {
      for (const begin of ['BEGIN', 'BEGIN; SELECT 1', 'START TRANSACTION ISOLATION LEVEL READ COMMITTED']) {
        const begun = client.query(begin);
        expect(await withRowLock(one, 'k', () => 'inside')).toBe('inside');
        await begun;
        await client.query('COMMIT');
      }
    }
    client.release();
  });

  test('what is no client at all is refused', async () => {
    for (const client of [undefined, null, {}, 'postgres://127.0.0.1']) {
      await expect(withRowLock(client as unknown as RowLockClient, 'k', never)).rejects.toThrow('the client has no query(text, values)');
    }
  });
});

describe('a transaction that cannot hold the lock', () => {
  test.each(['REPEATABLE READ', 'SERIALIZABLE'])('%s is refused: it would read from before the lock', async (level) => {
    const call = inTransaction(pool, (client) => withRowLock(client, 'k', never), `BEGIN ISOLATION LEVEL ${level}`);
    await expect(call).rejects.toMatchObject({ code: 'LOCK_CONFIGURATION', detail: expect.stringContaining('Use READ COMMITTED') });
  });

  test('one that is read-only is refused', async () => {
    const call = inTransaction(pool, (client) => withRowLock(client, 'k', never), 'BEGIN READ ONLY');
    await expect(call).rejects.toMatchObject({ code: 'LOCK_CONFIGURATION', detail: expect.stringContaining('read-only') });
  });

  test('one that is aborted already gets the error of the database', async () => {
    const call = inTransaction(pool, async (client) => {
      await client.query('SELECT 1 / 0').catch(() => undefined);
      await withRowLock(client, 'k', never);
    });
    await expect(call).rejects.toMatchObject({ code: 'LOCK_STORE', unknown: false, cause: { code: '25P02' } });
  });
});

describe('what the database says', () => {
  test('a missing table is named with its cure', async () => {
    for (const wrap of [plain, (client: RowLockClient) => client]) {
      const call = inTransaction(pool, (client) => withRowLock(wrap(client), 'k', never, { schema: 'other' }));
      await expect(call).rejects.toThrow(
        saying(
          'the table of row locks is missing in the schema "other". Call ensureSchema() of PostgresLockStore, or run what rowLockSql() returns.',
        ),
      );
      await expect(call).rejects.toThrow(LockConfigurationError);
    }
  });

  test('the smallest rights suffice, and the error without them names them', async () => {
    await server.query('CREATE ROLE clerk LOGIN');
    const clerks = server.pool({ connectionString: server.urlFor('clerk') });
    const call = () => inTransaction(clerks, (client) => withRowLock(plain(client), 'k', () => 'inside'));
    await expect(call()).rejects.toThrow(
      saying('Grant USAGE on the schema "distributed_lock", and SELECT, INSERT and UPDATE on its table row_lock.'),
    );
    await server.query('GRANT USAGE ON SCHEMA distributed_lock TO clerk');
    await expect(call()).rejects.toThrow(LockConfigurationError);
    await server.query('GRANT SELECT, INSERT, UPDATE ON distributed_lock.row_lock TO clerk');
    expect(await call()).toBe('inside');
  });

  test('a statement_timeout that is shorter than wait is no busy lock', async () => {
    await inTransaction(pool, (holder) =>
      withRowLock(holder, 'k', async () => {
        const call = inTransaction(pool, async (client) => {
          await client.query("SET LOCAL statement_timeout = '100ms'");
          await withRowLock(client, 'k', never);
        });
        await expect(call).rejects.toMatchObject({ code: 'LOCK_STORE', unknown: false, cause: { code: '57014' } });
      }),
    );
  });

  test('a connection that breaks while it waits is an error of the store, which nobody answered', async () => {
    const proxy = await TcpProxy.start(server.port);
    const client = await server.pool({ connectionString: server.urlFor('postgres', proxy.port) }).connect();
    client.on('error', () => undefined);
    await client.query('BEGIN');
    await inTransaction(pool, (holder) =>
      withRowLock(holder, 'k', async () => {
        const refused = expect(withRowLock(client, 'k', never)).rejects.toMatchObject({ code: 'LOCK_STORE', unknown: true });
        await until('a transaction that waits', async () => {
          return (await server.query("SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'")).length === 1;
        });
        proxy.cut();
        await refused;
      }),
    );
    client.release(true);
    await proxy.stop();
  });

  test('a connection that the server ends while it waits is an error of the store', async () => {
    await inTransaction(pool, (holder) =>
      withRowLock(holder, 'k', async () => {
        const call = inTransaction(pool, (client) => withRowLock(client, 'k', never, { wait: '60s' }));
        const refused = expect(call).rejects.toThrow(LockStoreError);
        let isRefused: boolean = false;
        void call.catch(() => (isRefused = true));
        // The call of the test before may still wait, too.
        await until('that it is refused', async () => {
          await server.terminateBackends("wait_event_type = 'Lock'");
          return isRefused;
        });
        await refused;
      }),
    );
  });
});

describe('keys', () => {
  test('of all kinds are apart from each other', async () => {
    const keys = [
      'a',
      'A',
      'a ',
      '%',
      '%00',
      '\0',
      '%25',
      '\u0001',
      'ü',
      'u\u0308',
      "'; DROP TABLE row_lock; --",
      '"',
      '\\',
      '{}',
      '{a,b}',
      'NULL',
    ];
    const nested = (client: RowLockClient, [key, ...rest]: readonly string[]): Promise<number> =>
      withRowLock(client, key as string, async () => 1 + (rest.length > 0 ? await nested(client, rest) : 0), { wait: 0 });
    await server.query('DELETE FROM distributed_lock.row_lock');
    expect(await inTransaction(pool, (client) => nested(client, keys))).toBe(keys.length);
    await inTransaction(pool, (client) => withRowLock(client, keys, () => undefined));
    expect(await server.query('SELECT count(*)::integer FROM distributed_lock.row_lock')).toEqual([{ count: keys.length }]);
  });

  test('of the greatest length fit into the index, whatever they are made of', async () => {
    const random = new Random(5);
    const everyControl = Array.from({ length: 1_024 }, () => String.fromCharCode(random.whole(0, 31))).join('');
    for (const key of [everyControl, '%'.repeat(1_024), '語'.repeat(341), 'x'.repeat(1_024)]) {
      expect(await inTransaction(pool, (client) => withRowLock(client, key, () => 'inside'))).toBe('inside');
    }
  });

  test('that no store could keep are refused before the database is asked', async () => {
    const asked: string[] = [];
    const client: RowLockClient = {
      query: async (text) => {
        asked.push(text);
      },
    };
    for (const key of ['', 'x'.repeat(1_025), '\ud800', ['a', ''], undefined as unknown as string[]]) {
      await expect(withRowLock(client, key, never)).rejects.toThrow(LockKeyError);
    }
    await expect(withRowLock(client, [], never)).rejects.toThrow(LockKeyError);
    await expect(withRowLock(client, 'k', never, { wait: -1 })).rejects.toThrow('withRowLock: wait is -1');
    await expect(withRowLock(client, 'k', never, { schema: '' })).rejects.toThrow("withRowLock: schema is ''");
    await expect(withRowLock(client, 'k', undefined as unknown as () => void)).rejects.toThrow('there is no function to run');
    expect(asked).toEqual([]);
  });

  test('lie in the schema that was named', async () => {
    await server.query(rowLockSql('orders'));
    await server.query(rowLockSql('orders'));
    await inTransaction(pool, (client) => withRowLock(client, 'here', () => undefined, { schema: 'orders' }));
    expect(await server.query('SELECT key FROM orders.row_lock')).toEqual([{ key: 'here' }]);
    expect(() => rowLockSql('two; words')).toThrow("rowLockSql: schema is 'two; words'");
  });

  test('lie where the store of leases makes its tables, too', async () => {
    await server.query('DROP SCHEMA distributed_lock CASCADE');
    await new PostgresLockStore(pool).ensureSchema();
    expect(await inTransaction(pool, (client) => withRowLock(client, 'k', () => 'inside'))).toBe('inside');
  });
});

describe('other libraries', () => {
  test.each<[string, (error: Error & { code?: string }) => object]>([
    ['Drizzle, as the cause', (cause) => new Error(`Failed query: params: secret`, { cause })],
    ['Prisma, beside its own code', ({ message, code }) => ({ code: 'P2010', message: 'secret', meta: { code, message } })],
  ])('errors are understood where %s keeps them', async (_, wrap) => {
    await inTransaction(pool, (holder) =>
      withRowLock(holder, 'k', async () => {
        const call = inTransaction(pool, (client) => {
          const query = (text: string, values: unknown[]) =>
            client.query(text, values).catch((error: Error) => {
              throw wrap(error);
            });
          return withRowLock({ query }, 'k', never, { wait: 0 });
        });
        const refusal: unknown = await call.catch((error: unknown) => error);
        expect(refusal).toMatchObject({ code: 'LOCK_NOT_ACQUIRED', reason: 'busy', cause: { code: '55P03' } });
        expect(inspect(refusal, { depth: 9 })).not.toContain('secret');
      }),
    );
  });

  test('PGlite: a transaction locks, the database itself is refused', async () => {
    const database = await PGlite.create();
    await database.exec(rowLockSql());
    expect(await database.transaction((transaction) => withRowLock(transaction, ['a', 'b'], () => 'inside'))).toBe('inside');
    await expect(withRowLock(database, 'k', never)).rejects.toThrow(saying('not inside a transaction'));
    await database.close();
    // A server made of WebAssembly takes most of a minute on a machine that is busy.
  }, 180_000);
});
