import 'reflect-metadata';
import { EntitySchema, MikroORM } from '@mikro-orm/postgresql';
import { drizzle } from 'drizzle-orm/node-postgres';
import createKnex from 'knex';
import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';
import { Sequelize } from 'sequelize';
import { DataSource } from 'typeorm';
import { addTransactionalDataSource, initializeTransactionalContext, runInTransaction, StorageDriver } from 'typeorm-transactional';
import { PostgresServer } from '../support/postgres-server';
import { openPrisma } from '../support/prisma';
import { Warned } from '../support/warned-balances';

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

let server: PostgresServer;
const warned = new Warned();

beforeAll(async () => {
  server = await PostgresServer.start();
});
afterAll(() => server.stop());

test.each(Object.entries(LIBRARIES))(
  '%s that is an argument of a locked method is a warning, once',
  (name, run) => warned.expectOneWarning(run, name),
  60_000,
);

test.each(Object.entries(IN_CONTEXT))(
  'a transaction around a locked method that %s shows, a provider, is a warning, and none in a lock above it',
  async (name, open) => {
    const { provider, open: inTransaction, close } = await open();
    const balances = await warned.start({}, provider);
    await balances.credit('0');
    await warned.locks.withLock('balance:1', () => inTransaction(() => balances.credit('1')));
    expect(warned.warnings).toEqual([]);
    for (const customerId of ['2', '3']) {
      await inTransaction(() => balances.credit(customerId));
    }
    expect(warned.warnings).toEqual([expect.stringContaining(`Fresh.credit takes its lock inside a transaction: so says ${name}.`)]);
    await close();
  },
  60_000,
);
