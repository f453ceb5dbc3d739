import 'reflect-metadata';
import assert from 'node:assert/strict';
import { TransactionScope } from 'nestjs-distributed-lock';
import { PostgresServer } from '../support/postgres-server';
import { Warned } from '../support/warned-balances';
import { watchRejections } from '../support/watch-rejections';

const data = { isTransaction: true, startTransaction: 'now', isTransactionActive: true };
const ofGraphQl: unknown = Object.assign(Object.create(null), data);

let server: PostgresServer;
const warned = new Warned();

beforeAll(async () => {
  server = await PostgresServer.start();
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

test('a client of pg that is an argument of a locked method is a warning, once', () =>
  warned.expectOneWarning(giveClient, 'a client of pg'));

test.each<[string, () => Promise<object>]>([
  ['is inside a transaction of another call', async () => server.pool().connect()],
  ['cannot be read', async () => new Proxy({}, { has: () => assert.fail('not readable') })],
])('a provider that %s is none', async (_which, make) => {
  const provider = await make();
  const query = (provider as { query?(text: string): unknown }).query?.bind(provider);
  const balances = await warned.start({}, provider);
  await query?.('BEGIN');
  expect(await balances.credit('1')).toEqual(['1', undefined]);
  await query?.('ROLLBACK');
  (provider as { release?(): void }).release?.();
  expect(warned.warnings).toEqual([]);
});

test('a call inside a lock that is above the transaction is none', async () => {
  const balances = await warned.start();
  await giveClient((given) => balances.debit('1', given));
  // It is debit() that takes the lock.
  expect(warned.warnings).toEqual([expect.stringContaining('Balances.debit takes its lock')]);
  warned.warnings.length = 0;
  await giveClient((given) => warned.locks.withLock('balance:1', () => balances.credit('1', given)));
  expect(warned.warnings).toEqual([]);
});

test('with the option there is none for a transaction that it follows, and one for another', async () => {
  const transactions = new TransactionScope();
  const balances = await warned.start({ transaction: transactions.current });
  await transactions.run(() => giveClient((given) => balances.credit('1', given)));
  expect(warned.warnings).toEqual([]);
  await giveClient((given) => balances.credit('1', given));
  expect(warned.warnings).toEqual([expect.stringContaining('let the option transaction of LockModule follow this one')]);
});

test('data is none, and an argument that cannot be read changes nothing', async () => {
  const balances = await warned.start();
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
  expect(warned.warnings).toEqual([]);
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
      const balances = await warned.start({}, gateway);
      await balances.credit('1', gateway);
      expect(new Set(gateway.asked)).toEqual(new Set(asked));
    }
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    unwatch();
  }
  expect([rejections, warned.warnings]).toEqual([[], []]);
});

test('only the first hundred calls of a method are looked at', async () => {
  const balances = await warned.start();
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
