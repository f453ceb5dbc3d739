import { EntityManager, type TransactionOptions } from '@mikro-orm/postgresql';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Knex } from 'knex';
import { TransactionScope } from 'nestjs-distributed-lock';
import type { Pool, PoolClient } from 'pg';
import type { Sequelize, Transaction } from 'sequelize';
import type { DataSource } from 'typeorm';
import type { PrismaClient } from '../support/prisma.js';
import type * as Prisma from '../support/prisma.js';

export const transactions = new TransactionScope();

export function followTypeOrm(dataSource: DataSource): void {
  dataSource.manager.transaction = transactions.around(dataSource.manager.transaction);
}

export function knexTransaction<T>(knex: Knex, work: (trx: Knex.Transaction) => Promise<T>): Promise<T> {
  return transactions.run(() => knex.transaction(work));
}

export function followDrizzle(database: NodePgDatabase): void {
  database.transaction = transactions.around(database.transaction);
}

export class FollowedEntityManager extends EntityManager {
  override transactional<T>(work: (em: this) => T | Promise<T>, options?: TransactionOptions): Promise<T> {
    return transactions.run(() => super.transactional(work, options));
  }
}

export function sequelizeTransaction<T>(sequelize: Sequelize, work: (transaction: Transaction) => PromiseLike<T>): Promise<T> {
  return transactions.run(() => sequelize.transaction(work));
}

export function prismaTransaction<T>(prisma: PrismaClient, work: (tx: Prisma.TransactionClient) => Promise<T>): Promise<T> {
  return transactions.run(() => prisma.$transaction(work, { maxWait: 10_000, timeout: 30_000 }));
}

export function outliveConnections(pool: Pool): void {
  pool.on('error', (error) => console.error(error)); // an idle one ended, and is replaced
  pool.on('connect', (client) => client.on('error', () => undefined)); // one in use: its next statement fails
}

export function inTransaction<T>(pool: Pool, work: (client: PoolClient) => Promise<T>): Promise<T> {
  return transactions.run(async () => {
    const client = await pool.connect();
    let broken = false;
    try {
      await client.query('BEGIN');
      const result = await work(client);
      await client.query('COMMIT');
      return result;
    } catch (error) {
      await client.query('ROLLBACK').catch(() => (broken = true));
      throw error;
    } finally {
      client.release(broken);
    }
  });
}
