import 'reflect-metadata';
import { EntitySchema, MikroORM } from '@mikro-orm/postgresql';
import { Injectable, Logger } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { jest } from '@jest/globals';
import { drizzle } from 'drizzle-orm/node-postgres';
import createKnex from 'knex';
import assert from 'node:assert/strict';
import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';
import {
  DistributedLock,
  LockModule,
  LockService,
  MemoryLockStore,
  TransactionScope,
  type LockModuleOptions,
} from 'nestjs-distributed-lock';
import { Sequelize } from 'sequelize';
import { DataSource } from 'typeorm';
import { addTransactionalDataSource, initializeTransactionalContext, runInTransaction, StorageDriver } from 'typeorm-transactional';
import { PostgresServer } from '../support/postgres-server';
import { openPrisma } from '../support/prisma';
import { watchRejections } from '../support/watch-rejections';

type Give = (given: unknown) => Promise<unknown>;

/** How each library gives a transaction to code, and what it gives outside of one. */
const LIBRARIES: Readonly<Record<string, (give: Give) => Promise<unknown>>> = {
  'an EntityManager of TypeORM': async (give) => {
    const dataSource = await new DataSource({ type: 'postgres', url: server.url }).initialize();
    await give(dataSource.manager);
    await dataSource.transaction(give);
    await dataSource.destroy();
  },
  'a QueryRunner of TypeORM': async (give) => {
    const dataSource = await new DataSource({ type: 'postgres', url: server.url }).initialize();
    const runner = dataSource.createQueryRunner();
    await give(runner);
    await runner.startTransaction();
    await give(runner);
    await runner.rollbackTransaction();
    await runner.release();
    await dataSource.destroy();
  },
  'a transaction of knex or Kysely': async (give) => {
    const knex = createKnex({ client: 'pg', connection: server.url });
    await give(knex);
    await knex.transaction(give);
    await knex.destroy();
  },
  'an EntityManager of MikroORM': async (give) => {
    const orm = await newMikroOrm();
    await give(orm.em.fork());
    await orm.em.fork().transactional(give);
    await orm.close();
  },
  'a transaction of drizzle': async (give) => {
    const database = drizzle(server.pool());
    await give(database);
    await database.transaction(give);
  },
  'a client of pg': async (give) => {
    const client = await server.pool().connect();
    await client.query('SELECT 1');
    await give(client);
    await client.query('BEGIN');
    await give(client);
    await client.query('ROLLBACK');
    client.release();
  },
  'a transaction client of Prisma': async (give) => {
    const prisma = openPrisma(server.pool());
    await give(prisma);
    await prisma.$transaction(give);
    await prisma.$disconnect();
  },
  'a transaction of Sequelize': async (give) => {
    const sequelize = new Sequelize(server.url, { logging: false });
    await give(sequelize);
    const transaction = await sequelize.transaction();
    await give({ transaction });
    await transaction.commit();
    await sequelize.close();
  },
};

/** The provider of each library, and how it opens a transaction that no argument shows. */
const IN_CONTEXT: Readonly<
  Record<string, () => Promise<{ provider: object; open(work: () => Promise<unknown>): Promise<unknown>; close(): Promise<unknown> }>>
> = {
  'the DataSource of typeorm-transactional': async () => {
    initializeTransactionalContext({ storageDriver: StorageDriver.ASYNC_LOCAL_STORAGE });
    const provider = addTransactionalDataSource(await new DataSource({ type: 'postgres', url: server.url }).initialize());
    return { provider, open: (work) => runInTransaction(work), close: () => provider.destroy() };
  },
  'an EntityManager of MikroORM': async () => {
    const orm = await newMikroOrm();
    return { provider: orm.em, open: (work) => orm.em.fork().transactional(work), close: () => orm.close() };
  },
  'the CLS of Sequelize': async () => {
    Sequelize.useCLS(newNamespace());
    const provider = new Sequelize(server.url, { logging: false });
    return { provider, open: (work) => provider.transaction(work), close: () => provider.close() };
  },
};

/** The part of a CLS namespace that Sequelize needs. */
function newNamespace(): object {
  const context = new AsyncLocalStorage<Map<string, unknown>>();
  return {
    run: (work: (map?: Map<string, unknown>) => unknown) => context.run(new Map(context.getStore()), () => work(context.getStore())),
    bind: (work: () => unknown) => AsyncResource.bind(work),
    get: (name: string) => context.getStore()?.get(name),
    set: (name: string, value: unknown) => context.getStore()?.set(name, value),
  };
}

function newMikroOrm(): Promise<MikroORM> {
  const unused = new EntitySchema<{ id: number }>({ name: 'unused', properties: { id: { type: 'number', primary: true } } });
  return MikroORM.init({ clientUrl: server.url, dbName: 'postgres', entities: [unused] });
}

const data = { isTransaction: true, startTransaction: 'now', isTransactionActive: true };
const ofGraphQl: unknown = Object.assign(Object.create(null), data);

@Injectable()
class Balances {
  @DistributedLock('balance:<customerId>')
  async credit(customerId: string, given?: unknown): Promise<unknown> {
    return [customerId, given];
  }

  @DistributedLock('balance:<customerId>')
  async debit(customerId: string, given?: unknown): Promise<unknown> {
    return this.credit(customerId, given);
  }
}

let server: PostgresServer;
let module: TestingModule;
let warnings: string[];

async function start(options: LockModuleOptions = {}, provider: object = {}): Promise<Balances> {
  // A class anew: what was said is remembered for each method.
  class Fresh extends Balances {
    @DistributedLock('balance:<customerId>')
    override async credit(customerId: string, given?: unknown): Promise<unknown> {
      return [customerId, given];
    }
  }
  module = await Test.createTestingModule({
    imports: [LockModule.forRoot({ store: new MemoryLockStore(), ...options })],
    providers: [
      { provide: Balances, useClass: Fresh },
      { provide: 'of a library', useValue: provider },
    ],
  }).compile();
  module.useLogger(false);
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

test.each(Object.entries(LIBRARIES))(
  '%s that is an argument of a locked method is a warning, once',
  async (name, run) => {
    const balances = await start();
    let before: number | undefined;
    await run(async (given) => {
      await balances.credit('1', given);
      before ??= warnings.length;
      await balances.credit('2', given);
      return undefined;
    });
    // The first one was given outside of a transaction.
    expect(before).toBe(0);
    expect(warnings).toEqual([expect.stringContaining(`Fresh.credit takes its lock inside a transaction: it was given ${name}.`)]);
  },
  60_000,
);

test.each(Object.entries(IN_CONTEXT))(
  'a transaction around a locked method that %s shows, a provider, is a warning, and none in a lock above it',
  async (name, open) => {
    const { provider, open: inTransaction, close } = await open();
    const balances = await start({}, provider);
    await balances.credit('0');
    await module.get(LockService).withLock('balance:1', () => inTransaction(() => balances.credit('1')));
    expect(warnings).toEqual([]);
    for (const customerId of ['2', '3']) {
      await inTransaction(() => balances.credit(customerId));
    }
    expect(warnings).toEqual([expect.stringContaining(`Fresh.credit takes its lock inside a transaction: so says ${name}.`)]);
    await close();
  },
  60_000,
);

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
  await LIBRARIES['a transaction of drizzle']?.((given) => balances.debit('1', given));
  // It is debit() that takes the lock.
  expect(warnings).toEqual([expect.stringContaining('Balances.debit takes its lock')]);
  warnings = [];
  await LIBRARIES['a transaction of drizzle']?.((given) =>
    module.get(LockService).withLock('balance:1', () => balances.credit('1', given)),
  );
  expect(warnings).toEqual([]);
});

test('with the option there is none for a transaction that it follows, and one for another', async () => {
  const transactions = new TransactionScope();
  const balances = await start({ transaction: transactions.current });
  await transactions.run(() => LIBRARIES['a transaction of drizzle']?.((given) => balances.credit('1', given)));
  expect(warnings).toEqual([]);
  await LIBRARIES['a transaction of drizzle']?.((given) => balances.credit('1', given));
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
