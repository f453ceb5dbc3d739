import 'reflect-metadata';
import { Test } from '@nestjs/testing';
import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Sequelize, type Transaction } from 'sequelize';
import { DataSource } from 'typeorm';
import { LockService } from '../../lib/nest/lock.service';
import { MemoryLockStore } from '../../lib/memory/memory-lock-store';
import { AppModule, Points, Rewards } from '../readme/transactions';
import { makeLocks } from '../support/make-locks';
import { PostgresServer } from '../support/postgres-server';
import { openPrisma } from '../support/prisma';
import { until } from '../support/until';
import { LIBRARIES, openTypeOrm } from './accounts';
import { check, CREDITS, type Findings } from './checks';
import { LEFT_BEHIND } from './left-behind';
import { transactions } from './recipes';

const run = promisify(execFile);

let server: PostgresServer;

beforeAll(async () => {
  server = await PostgresServer.start();
  await server.query('CREATE TABLE balance (id int PRIMARY KEY, amount int NOT NULL)');
  await server.query('INSERT INTO balance VALUES (1, 0)');
});
afterAll(() => server.stop());

function expectHeldToTheCommit(findings: Findings): void {
  const { unfollowed, ...others } = findings;
  expect(others).toEqual({
    followed: CREDITS,
    afterOthers: Object.fromEntries(Object.keys(LEFT_BEHIND).map((way) => [way, CREDITS])),
    rollback: { isTaken: true, amount: 0 },
    isEntered: true,
    savepoint: { isTaken: true, amount: 9 },
    isLeft: false,
  });
  // The control: without the option updates are lost.
  expect(unfollowed).toBeLessThan(CREDITS);
}

test.each(Object.entries(LIBRARIES))(
  'a lock inside a transaction of %s is held until it has ended, wherever that begins',
  async (_name, open) => {
    const account = await open(server);
    try {
      expectHeldToTheCommit(await check(account));
    } finally {
      await account.close();
    }
  },
  60_000,
);

test.each(Object.entries(LIBRARIES))(
  'a connection that ends in the middle of a transaction of %s fails that one alone',
  async (_name, open) => {
    const account = await open(server);
    try {
      const cut = account.transaction(async (ask) => {
        await ask('SELECT 1');
        expect(await server.terminateBackends('xact_start IS NOT NULL')).toBe(1);
        await until('that it has ended', async () => (await server.terminateBackends('xact_start IS NOT NULL')) === 0);
        // Its end is read, between two statements.
        await sleep(100);
        await ask('SELECT 1');
      });
      await expect(cut).rejects.toThrow();
      await account.transaction(async (ask) => void (await ask('SELECT 1')));
    } finally {
      // MikroORM never gives back a connection whose rollback failed, and waits for it.
      account.close().catch(() => undefined);
    }
  },
  60_000,
);

test('a lock inside a transaction of @nestjs-cls/transactional is held until it has ended, wherever that begins', async () => {
  const args = ['--import', './test/support/typescript.mjs', 'test/transaction/nestjs-cls.ts', server.url];
  const { stdout } = await run(process.execPath, args, { timeout: 50_000 });
  expectHeldToTheCommit(JSON.parse(stdout) as Findings);
});

test('a transaction of Prisma that waits for a lock past its timeout is rolled back; one whose timeout is longer goes on', async () => {
  const pool = server.pool();
  const prisma = openPrisma(pool);
  const locks = makeLocks(new MemoryLockStore(), { wait: 60_000, transaction: transactions.current });
  await server.query('CREATE TABLE IF NOT EXISTS waits (name text)');
  const holder = await locks.acquire('balance:1');
  const begun = new Set<string>();
  const begin = (name: string, timeout: number): Promise<unknown> =>
    transactions.run(() =>
      prisma.$transaction(
        async (tx) => {
          await tx.$queryRawUnsafe(`INSERT INTO waits VALUES ('${name} before')`).then(() => begun.add(name));
          await locks.withLock('balance:1', () => tx.$queryRawUnsafe(`INSERT INTO waits VALUES ('${name} inside')`));
        },
        { timeout },
      ),
    );
  const long = begin('long', 60_000);
  await until('the long one waits', () => begun.has('long'));
  const short = begin('short', 200);
  short.catch(() => begun.add('short'));
  await until('the short one waits, or is late already', () => begun.has('short'));
  const open = "SELECT pid FROM pg_stat_activity WHERE state = 'idle in transaction' AND query LIKE 'INSERT INTO waits%'";
  await until('the short one is rolled back', async () => (await server.query(open)).length === 1);
  await holder.release();
  await long;
  await expect(short).rejects.toMatchObject({ code: 'P2028' });
  expect(await server.query('SELECT name FROM waits')).toEqual([{ name: 'long before' }, { name: 'long inside' }]);
  expect(await locks.operations.inspect('balance:1')).toBeNull();
  await prisma.$disconnect();
  await locks.shutdown();
});

test('a lock inside an unmanaged transaction of Sequelize is held until the commit inside run(), and not by following the function', async () => {
  const sequelize = new Sequelize(server.url, { logging: false });
  const locks = makeLocks(new MemoryLockStore(), { transaction: transactions.current });
  const isHeldAtCommit = async (open: () => Promise<Transaction>): Promise<boolean> => {
    const transaction = await open();
    await locks.withLock('balance:1', () => sequelize.query('SELECT 1', { transaction }));
    const isHeld = (await locks.operations.inspect('balance:1')) !== null;
    await transaction.commit();
    return isHeld;
  };
  const followed = transactions.around(() => sequelize.transaction());
  expect(await isHeldAtCommit(followed)).toBe(false);
  expect(await transactions.run(() => isHeldAtCommit(() => sequelize.transaction()))).toBe(true);
  await until('the lock is released', async () => (await locks.operations.inspect('balance:1')) === null);
  await locks.shutdown();
  await sequelize.close();
});

test('the lock of the example of the page is held until its transaction has committed', async () => {
  await server.query('CREATE TABLE rewards (customer_id text)');
  const dataSource = await openTypeOrm(server);
  const application = await Test.createTestingModule({
    imports: [AppModule],
    providers: [Points, Rewards, { provide: DataSource, useValue: dataSource }],
  }).compile();
  const locks = application.get(LockService);
  const other = await server.pool().connect();
  await other.query('BEGIN');
  await other.query('LOCK TABLE rewards');
  const rewarded = application.get(Rewards).reward('42');
  await until('the transaction waits for the table', async () => {
    const [row] = await server.query<{ count: number }>('SELECT count(*)::int AS count FROM pg_locks WHERE NOT granted');
    return row !== undefined && row.count > 0;
  });
  expect(await locks.operations.inspect('points:42')).not.toBeNull();
  await other.query('ROLLBACK');
  other.release();
  await rewarded;
  await until('the lock is released', async () => (await locks.operations.inspect('points:42')) === null);
  expect(await server.query('SELECT customer_id FROM rewards')).toEqual([{ customer_id: '42' }]);
  await application.close();
  await dataSource.destroy();
});
