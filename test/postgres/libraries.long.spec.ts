import 'reflect-metadata';
import { drizzle } from 'drizzle-orm/node-postgres';
import createKnex from 'knex';
import { inspect } from 'node:util';
import type { Pool } from 'pg';
import { DataSource } from 'typeorm';
import { LockConfigurationError, LockNotAcquiredError } from '../../lib/core/words/errors';
import { PostgresLockStore, withRowLock, type RowLockClient } from '../../lib/postgres/index';
import { inTransaction } from '../support/in-transaction';
import { makeLocks } from '../support/make-locks';
import { openMikroOrm } from '../support/mikro-orm';
import { openPrisma } from '../support/prisma';
import { saying } from '../support/saying';
import { PostgresServer } from '../support/postgres-server';
import { drizzleRows, drizzleStore, knexRows, mikroRows, prismaRows, prismaWithLocks, typeormStore } from './libraries';

let server: PostgresServer;
let pool: Pool;

beforeAll(async () => {
  server = await PostgresServer.start();
  pool = server.pool();
  await new PostgresLockStore(pool).ensureSchema();
});
afterAll(() => server.stop());

interface Library {
  /** Runs something in a transaction. */
  transaction<T>(body: (rows: RowLockClient) => Promise<T>): Promise<T>;
  /** A client outside of a transaction. */
  readonly outside: RowLockClient;
  end(): Promise<unknown>;
}

const LIBRARIES: Readonly<Record<string, () => Promise<Library>>> = {
  Prisma: async () => {
    const client = openPrisma(pool);
    return {
      // Its own limits are for servers that are not busy.
      transaction: (body) => client.$transaction((tx) => body(prismaRows(tx)), { maxWait: 30_000, timeout: 30_000 }),
      outside: prismaRows(client),
      end: () => client.$disconnect(),
    };
  },
  MikroORM: async () => {
    const orm = await openMikroOrm(server);
    return {
      transaction: (body) => orm.em.fork().transactional((em) => body(mikroRows(em))),
      outside: mikroRows(orm.em.fork()),
      end: () => orm.close(),
    };
  },
  knex: async () => {
    const knex = createKnex({ client: 'pg', connection: server.url });
    return {
      transaction: (body) => knex.transaction((trx) => body(knexRows(trx))),
      outside: knexRows(knex as never),
      end: () => knex.destroy(),
    };
  },
  drizzle: async () => {
    const database = drizzle(pool);
    return {
      transaction: (body) => database.transaction((tx) => body(drizzleRows(tx))),
      outside: drizzleRows(database),
      end: async () => undefined,
    };
  },
};

describe.each(Object.keys(LIBRARIES))('withRowLock over %s', (name) => {
  let library: Library;

  beforeAll(async () => {
    library = await (LIBRARIES[name] as () => Promise<Library>)();
  });
  afterAll(() => library.end());

  test('runs alone, and is busy for others, whose error carries no key of the statement', async () => {
    await library.transaction((rows) =>
      withRowLock(rows, ['a', `of ${name}`], async () => {
        const other = library.transaction((waiting) => withRowLock(waiting, `of ${name}`, () => undefined, { wait: 50 }));
        const refusal: unknown = await other.catch((error: unknown) => error);
        expect(refusal).toBeInstanceOf(LockNotAcquiredError);
        expect(refusal).toMatchObject({ reason: 'busy', cause: { code: '55P03' } });
        expect(inspect((refusal as Error).cause, { depth: 9 })).not.toContain(`of ${name}`);
      }),
    );
    expect(await library.transaction((rows) => withRowLock(rows, `of ${name}`, () => 'free', { wait: 0 }))).toBe('free');
  });

  test('locks the keys that were named, whatever characters are in them', async () => {
    const keys = [`of ${name}`, 'NULL', '?', '$1', `'`, '"', ',', '\\', '{}', "\\'; --", '\u{1f512}\t\n'];
    await library.transaction((rows) =>
      withRowLock(rows, keys, async () => {
        for (const key of keys) {
          const other = inTransaction(pool, (client) => withRowLock(client, key, () => undefined, { wait: 0 }));
          await expect(other).rejects.toMatchObject({ reason: 'busy' });
        }
      }),
    );
  });

  test('is refused outside of a transaction', async () => {
    await expect(withRowLock(library.outside, 'k', () => undefined)).rejects.toBeInstanceOf(LockConfigurationError);
    await expect(withRowLock(library.outside, 'k', () => undefined)).rejects.toThrow(saying(/not inside a transaction/));
  });
});

test('TypeORM: the manager of a transaction locks, a data source is refused, and errors carry no values', async () => {
  const source = await new DataSource({ type: 'postgres', url: server.url }).initialize();
  try {
    await source.transaction((manager) =>
      withRowLock(manager, 'of typeorm', async () => {
        const other = source.transaction((waiter) => withRowLock(waiter, 'of typeorm', () => undefined, { wait: 50 }));
        const refusal: unknown = await other.catch((error: unknown) => error);
        expect(refusal).toBeInstanceOf(LockNotAcquiredError);
        expect(inspect((refusal as Error).cause, { depth: 9 })).not.toContain('of typeorm');
      }),
    );
    await expect(withRowLock(source, 'k', () => undefined)).rejects.toThrow(saying('not inside a transaction'));
  } finally {
    await source.destroy();
  }
});

describe('a store over the pool of', () => {
  async function lockIn(store: PostgresLockStore): Promise<unknown> {
    await store.open({ prefix: 'lock', warn: () => undefined });
    const result = await makeLocks(store).withLock('k', () => 'ran');
    await store.close();
    return result;
  }

  test('TypeORM locks', async () => {
    const source = await new DataSource({ type: 'postgres', url: server.url }).initialize();
    expect(await lockIn(typeormStore(source))).toBe('ran');
    await source.destroy();
  });

  test('Prisma locks', async () => {
    expect(await lockIn(prismaWithLocks(pool).store)).toBe('ran');
  });

  test('drizzle locks', async () => {
    expect(await lockIn(drizzleStore(drizzle(pool)))).toBe('ran');
  });
});
