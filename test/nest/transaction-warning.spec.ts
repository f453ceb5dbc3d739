import 'reflect-metadata';
import { Logger } from '@nestjs/common';
import type { TestingModule } from '@nestjs/testing';
import { jest } from '@jest/globals';
import assert from 'node:assert/strict';
import { LockService, TransactionScope, type LockModuleOptions } from 'nestjs-distributed-lock';
import { PostgresServer } from '../support/postgres-server';
import { Balances, openBalances } from '../support/warned-balances';
import { watchRejections } from '../support/watch-rejections';

const data = { isTransaction: true, startTransaction: 'now', isTransactionActive: true };
const ofGraphQl: unknown = Object.assign(Object.create(null), data);

let server: PostgresServer;
let module: TestingModule;
let warnings: string[];

async function start(options: LockModuleOptions = {}, provider: object = {}): Promise<Balances> {
  module = await openBalances(options, provider);
  return module.get(Balances);
}

beforeAll(async () => {
  server = await PostgresServer.start();
});
beforeEach(() => {
  warnings = [];
  jest.spyOn(Logger.prototype, 'warn').mockImplementation((message: unknown) => void warnings.push(String(message)));
});
afterEach(async () => {
  jest.restoreAllMocks();
  await module.close();
});
afterAll(() => server.stop());

/** Gives a client of pg outside of a transaction, and inside one. */
async function giveClient(give: (given: unknown) => Promise<unknown>): Promise<void> {
  const client = await server.pool().connect();
  await client.query('SELECT 1');
  await give(client);
  await client.query('BEGIN');
  await give(client);
  await client.query('ROLLBACK');
  client.release();
}

test('a client of pg that is an argument of a locked method is a warning, once', async () => {
  const balances = await start();
  let before: number | undefined;
  await giveClient(async (given) => {
    await balances.credit('1', given);
    before ??= warnings.length;
    await balances.credit('2', given);
    return undefined;
  });
  // The first one was given outside of a transaction.
  expect(before).toBe(0);
  expect(warnings).toEqual([expect.stringContaining('Fresh.credit takes its lock inside a transaction: it was given a client of pg.')]);
});

test.each<[string, () => Promise<object>]>([
  ['is inside a transaction of another call', async () => server.pool().connect()],
  ['cannot be read', async () => new Proxy({}, { has: () => assert.fail('not readable') })],
])('a provider that %s is none', async (_which, make) => {
  const provider = await make();
  const query = (provider as { query?(text: string): unknown }).query?.bind(provider);
  const balances = await start({}, provider);
  await query?.('BEGIN');
  expect(await balances.credit('1')).toEqual(['1', undefined]);
  await query?.('ROLLBACK');
  (provider as { release?(): void }).release?.();
  expect(warnings).toEqual([]);
});

test('a call inside a lock that is above the transaction is none', async () => {
  const balances = await start();
  await giveClient((given) => balances.debit('1', given));
  // It is debit() that takes the lock.
  expect(warnings).toEqual([expect.stringContaining('Balances.debit takes its lock')]);
  warnings = [];
  await giveClient((given) => module.get(LockService).withLock('balance:1', () => balances.credit('1', given)));
  expect(warnings).toEqual([]);
});

test('with the option there is none for a transaction that it follows, and one for another', async () => {
  const transactions = new TransactionScope();
  const balances = await start({ transaction: transactions.current });
  await transactions.run(() => giveClient((given) => balances.credit('1', given)));
  expect(warnings).toEqual([]);
  await giveClient((given) => balances.credit('1', given));
  expect(warnings).toEqual([expect.stringContaining('let the option transaction of LockModule follow this one')]);
});

test('data is none, and an argument that cannot be read changes nothing', async () => {
  const balances = await start();
  const broken = new (class {
    get queryRunner(): never {
      throw new Error('not readable');
    }
  })();
  const ofClass = new (class {
    readonly isTransaction = true;
  })();
  for (const given of [data, [data], ofGraphQl, ofClass, { transaction: data }, null, 'text', broken]) {
    expect(await balances.credit('1', given)).toEqual(['1', given]);
  }
  expect(warnings).toEqual([]);
});

/** A class of a user with the same names as a library, and a value with all properties that show a library. */
class Gateway {
  readonly asked: string[] = [];
  async getTransactionStatus(): Promise<never> {
    return this.answer('status');
  }
  async isInTransaction(): Promise<never> {
    return this.answer('in');
  }
  async isTransactionActive(): Promise<never> {
    return this.answer('active');
  }
  withTransaction(): void {}
  protected answer(name: string): never {
    this.asked.push(name);
    throw new Error('asked without an id');
  }
}
class Lookalike extends Gateway {
  readonly tx = {};
  query(): void {}
  getTypeParser(): void {}
  getUnitOfWork(): void {}
  fork(): void {}
  withoutTransaction(): void {}
}

test('methods of users that have the name of one of a library are not called, and a promise of one that is called is caught', async () => {
  const rejections: unknown[] = [];
  const unwatch = watchRejections((reason) => rejections.push(reason));
  try {
    for (const [gateway, asked] of [
      [new Gateway(), []],
      [new Lookalike(), ['status', 'active', 'in']],
    ] as const) {
      const balances = await start({}, gateway);
      await balances.credit('1', gateway);
      expect(new Set(gateway.asked)).toEqual(new Set(asked));
      await module.close();
    }
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    unwatch();
  }
  expect([rejections, warnings]).toEqual([[], []]);
});

test('only the first hundred calls of a method are looked at', async () => {
  const balances = await start();
  let reads = 0;
  const given = new (class {
    readonly schema = {};
    transaction(): void {}
    get isTransaction(): boolean {
      reads++;
      return false;
    }
  })();
  for (let at = 0; at < 300; at++) {
    await balances.credit('1', given);
  }
  expect(reads).toBe(100);
});
