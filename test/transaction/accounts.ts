import type { EntityManager } from '@mikro-orm/postgresql';
import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import createKnex from 'knex';
import type { Pool } from 'pg';
import { Sequelize } from 'sequelize';
import { DataSource } from 'typeorm';
import { deleteDataSourceByName, initializeTransactionalContext, Propagation, runInTransaction } from 'typeorm-transactional';
import type { PostgresServer } from '../support/postgres-server';
import { withDecorators } from '../readme/transactions';
import { openMikroOrm } from '../support/mikro-orm';
import { openPrisma, type TransactionClient } from '../support/prisma';
import {
  FollowedEntityManager,
  followDrizzle,
  knexTransaction,
  followTypeOrm,
  inTransaction,
  outliveConnections,
  prismaTransaction,
  sequelizeTransaction,
} from './recipes';

/** Runs a statement in the transaction around it. */
export type Run = (statement: string) => Promise<unknown>;

/** The offers of a library: a transaction, and a savepoint inside one where it has them. */
export interface Account {
  transaction(body: (run: Run) => Promise<void>): Promise<void>;
  /** Runs `inner` in a savepoint of a transaction, and then `outer`. */
  nested(inner: (run: Run) => Promise<void>, outer: (run: Run) => Promise<void>): Promise<void>;
  close(): Promise<unknown>;
}

export async function openTypeOrm(server: PostgresServer): Promise<DataSource> {
  const dataSource = await new DataSource({ type: 'postgres', url: server.url }).initialize();
  followTypeOrm(dataSource);
  return dataSource;
}

async function typeOrm(server: PostgresServer): Promise<Account> {
  const dataSource = await openTypeOrm(server);
  return {
    transaction: (body) => dataSource.transaction((manager) => body((statement) => manager.query(statement))),
    nested: (inner, outer) =>
      dataSource.transaction(async (manager) => {
        await manager.transaction((nested) => inner((statement) => nested.query(statement)));
        await outer((statement) => manager.query(statement));
      }),
    close: () => dataSource.destroy(),
  };
}

async function typeOrmTransactional(server: PostgresServer): Promise<Account> {
  initializeTransactionalContext();
  const dataSource = withDecorators(await new DataSource({ type: 'postgres', url: server.url }).initialize());
  const run: Run = (statement) => dataSource.query(statement);
  return {
    transaction: (body) => runInTransaction(() => body(run)),
    nested: (inner, outer) =>
      runInTransaction(async () => {
        await runInTransaction(() => inner(run), { propagation: Propagation.NESTED });
        await outer(run);
      }),
    close: () => {
      deleteDataSourceByName('default');
      return dataSource.destroy();
    },
  };
}

function poolOf(server: PostgresServer): Pool {
  const pool = server.pool();
  outliveConnections(pool);
  return pool;
}

async function knex(server: PostgresServer): Promise<Account> {
  const client = createKnex({ client: 'pg', connection: server.url, pool: { min: 0, max: 10 } });
  return {
    transaction: (body) => knexTransaction(client, (trx) => body(async (statement) => trx.raw(statement))),
    nested: (inner, outer) =>
      knexTransaction(client, async (trx) => {
        await trx.transaction((nested) => inner(async (statement) => nested.raw(statement)));
        await outer(async (statement) => trx.raw(statement));
      }),
    close: () => client.destroy(),
  };
}

async function drizzleOrm(server: PostgresServer): Promise<Account> {
  const pool = poolOf(server);
  const database = drizzle(pool);
  followDrizzle(database);
  return {
    transaction: (body) => database.transaction((tx) => body((statement) => tx.execute(sql.raw(statement)))),
    nested: (inner, outer) =>
      database.transaction(async (tx) => {
        await tx.transaction((nested) => inner((statement) => nested.execute(sql.raw(statement))));
        await outer((statement) => tx.execute(sql.raw(statement)));
      }),
    close: async () => undefined,
  };
}

async function mikroOrm(server: PostgresServer): Promise<Account> {
  const orm = await openMikroOrm(server, { entityManager: FollowedEntityManager });
  const by =
    (em: EntityManager): Run =>
    (statement) =>
      em.execute(statement);
  return {
    transaction: (body) => orm.em.fork().transactional((em) => body(by(em))),
    nested: (inner, outer) =>
      orm.em.fork().transactional(async (em) => {
        await em.transactional((nested) => inner(by(nested)));
        await outer(by(em));
      }),
    close: () => orm.close(),
  };
}

async function pg(server: PostgresServer): Promise<Account> {
  const pool = poolOf(server);
  return {
    transaction: (body) => inTransaction(pool, (client) => body((statement) => client.query(statement))),
    nested: (inner, outer) =>
      inTransaction(pool, async (client) => {
        await client.query('SAVEPOINT one');
        await inner((statement) => client.query(statement));
        await client.query('RELEASE SAVEPOINT one');
        await outer((statement) => client.query(statement));
      }),
    close: async () => undefined,
  };
}

async function sequelize(server: PostgresServer): Promise<Account> {
  const client = new Sequelize(server.url, { logging: false, pool: { max: 10 } });
  return {
    transaction: (body) => sequelizeTransaction(client, (transaction) => body((statement) => client.query(statement, { transaction }))),
    nested: (inner, outer) =>
      sequelizeTransaction(client, async (transaction) => {
        await client.transaction({ transaction }, (nested) => inner((statement) => client.query(statement, { transaction: nested })));
        await outer((statement) => client.query(statement, { transaction }));
      }),
    close: () => client.close(),
  };
}

async function prisma(server: PostgresServer): Promise<Account> {
  const client = openPrisma(server.pool());
  const by =
    (tx: TransactionClient): Run =>
    async (statement) =>
      tx.$queryRawUnsafe(statement);
  return {
    transaction: (body) => prismaTransaction(client, (tx) => body(by(tx))),
    nested: (inner, outer) =>
      prismaTransaction(client, async (tx) => {
        await tx.$transaction((nested) => inner(by(nested)));
        await outer(by(tx));
      }),
    close: () => client.$disconnect(),
  };
}

/** The libraries, with the recipe of each. */
export const LIBRARIES: Readonly<Record<string, (server: PostgresServer) => Promise<Account>>> = {
  TypeORM: typeOrm,
  'typeorm-transactional': typeOrmTransactional,
  knex,
  drizzle: drizzleOrm,
  MikroORM: mikroOrm,
  Sequelize: sequelize,
  Prisma: prisma,
  pg,
};
