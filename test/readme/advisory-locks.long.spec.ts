import 'reflect-metadata';
import type { MikroORM } from '@mikro-orm/postgresql';
import type { Pool } from 'pg';
import { DataSource } from 'typeorm';
import { rowLockSql } from '../../lib/postgres/row-lock/row-lock-table';
import { openMikroOrm } from '../support/mikro-orm';
import { PostgresServer } from '../support/postgres-server';
import { openPrisma, type PrismaClient } from '../support/prisma';
import { until } from '../support/until';
import { addThree } from './advisory-locks';

let server: PostgresServer;
let pool: Pool;
let dataSource: DataSource;
let prisma: PrismaClient;
let orm: MikroORM;

beforeAll(async () => {
  server = await PostgresServer.start();
  await server.query(rowLockSql());
  await server.query('CREATE TABLE balance (customer_id text PRIMARY KEY, amount int NOT NULL)');
  pool = server.pool();
  dataSource = await new DataSource({ type: 'postgres', url: server.url }).initialize();
  prisma = openPrisma(pool);
  orm = await openMikroOrm(server);
}, 120_000);
afterAll(async () => {
  await Promise.all([dataSource.destroy(), prisma.$disconnect(), orm.close()]);
  await server.stop();
});

/** A statement that answers one value. */
type Ask = (statement: string) => Promise<unknown>;

interface Library {
  /** On the pool of the library. */
  readonly ask: Ask;
  transaction(body: (ask: Ask) => Promise<void>): Promise<void>;
}

async function valueOf(answer: PromiseLike<unknown>): Promise<unknown> {
  return ((await answer) as { value: unknown }[])[0]?.value;
}

const LIBRARIES: Readonly<Record<string, Library>> = {
  TypeORM: {
    ask: (statement) => valueOf(dataSource.query(statement)),
    transaction: (body) => dataSource.transaction((tx) => body((statement) => valueOf(tx.query(statement)))),
  },
  Prisma: {
    ask: (statement) => valueOf(prisma.$queryRawUnsafe(statement)),
    transaction: (body) => prisma.$transaction((tx) => body((statement) => valueOf(tx.$queryRawUnsafe(statement)))),
  },
  MikroORM: {
    ask: (statement) => valueOf(orm.em.fork().execute(statement)),
    transaction: (body) => orm.em.fork().transactional((em) => body((statement) => valueOf(em.execute(statement)))),
  },
};

describe.each(Object.keys(LIBRARIES))('an advisory lock on the pool of %s', (name) => {
  const { ask, transaction } = LIBRARIES[name] as Library;
  const number = Object.keys(LIBRARIES).indexOf(name);
  const isHeld = async (): Promise<boolean> =>
    (await server.query('SELECT FROM pg_locks WHERE locktype = $1 AND objid = $2', ['advisory', number])).length > 0;

  test('lets a second caller in that is given the same connection', async () => {
    expect(await ask(`SELECT pg_try_advisory_lock(${number}) AS value`)).toBe(true);
    expect(await ask(`SELECT pg_try_advisory_lock(${number}) AS value`)).toBe(true);
  });

  test('stays after an unlock that is given another connection', async () => {
    await transaction(async (inside) => {
      expect(await inside('SELECT 1 AS value')).toBe(1);
      expect(await ask(`SELECT pg_advisory_unlock(${number}) AS value`)).toBe(false);
    });
    expect(await isHeld()).toBe(true);
  });
});

test('callers that wait for an advisory lock keep the connections that its holder needs', async () => {
  const small = server.pool({ max: 2, connectionTimeoutMillis: 5_000 });
  const holder = await small.connect();
  await holder.query('SELECT pg_advisory_lock(99)');
  const waiter = small.query('SELECT pg_advisory_lock(99)');
  await until('a caller waits', async () => (await server.query('SELECT FROM pg_locks WHERE NOT granted')).length === 1);
  await expect(small.query('SELECT 1')).rejects.toThrow('timeout exceeded when trying to connect');
  await holder.query('SELECT pg_advisory_unlock(99)');
  holder.release();
  await waiter;
});

test('the holder of an advisory lock of a transaction goes on while others wait for it, on the connection that it has', async () => {
  const small = server.pool({ max: 2 });
  const [holder, waiter] = await Promise.all([small.connect(), small.connect()]);
  for (const client of [holder, waiter]) {
    await client.query('BEGIN');
  }
  await holder.query('SELECT pg_advisory_xact_lock(99)');
  const waited = waiter.query('SELECT pg_advisory_xact_lock(99)');
  await until('a caller waits', async () => (await server.query('SELECT FROM pg_locks WHERE NOT granted')).length === 1);
  await holder.query('SELECT 1');
  await holder.query('COMMIT');
  await waited;
  await waiter.query('COMMIT');
  [holder, waiter].forEach((client) => client.release());
});

test('row locks in transactions of TypeORM, Prisma and MikroORM keep out one another, as printed', async () => {
  await server.query("INSERT INTO balance VALUES ('42', 0)");
  await Promise.all(Array.from({ length: 4 }, () => addThree(dataSource, prisma, orm, '42')));
  expect(await server.query('SELECT amount FROM balance')).toEqual([{ amount: 12 }]);
});
