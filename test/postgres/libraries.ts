import { raw, type EntityManager } from '@mikro-orm/postgresql';
import { PrismaPg } from '@prisma/adapter-pg';
import { sql, type SQL } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Knex } from 'knex';
import { PostgresLockStore, type PostgresPool, type RowLockClient } from 'nestjs-distributed-lock/postgres';
import type { Pool } from 'pg';
import type { DataSource } from 'typeorm';

/** The part of a transaction of Prisma that is used. */
interface PrismaTransaction {
  $queryRawUnsafe(text: string, ...values: unknown[]): PromiseLike<unknown>;
}

export function prismaRows(tx: PrismaTransaction): RowLockClient {
  return { query: (text, values) => tx.$queryRawUnsafe(text, ...values) };
}

export function mikroRows(em: EntityManager): RowLockClient {
  const list = (value: unknown): unknown => (Array.isArray(value) ? raw('array[?]', [value]) : value);
  return { query: (text, values) => em.execute(text.replaceAll(/\$\d+/g, '?'), values.map(list)) };
}

export function knexRows(trx: Knex.Transaction): RowLockClient {
  return { query: (text, values) => trx.raw(text.replaceAll(/\$\d+/g, '?'), values as Knex.RawBinding[]) };
}

export function drizzleRows(tx: { execute(query: SQL): PromiseLike<unknown> }): RowLockClient {
  const statement = (text: string, values: unknown[]): SQL =>
    sql(text.split(/\$\d+/) as unknown as TemplateStringsArray, ...values.map((value) => sql.param(value)));
  return { query: (text, values) => tx.execute(statement(text, values)) };
}

export function typeormStore(dataSource: DataSource): PostgresLockStore {
  return new PostgresLockStore((dataSource.driver as unknown as { master: PostgresPool }).master);
}

export function prismaWithLocks(pool: Pool): { adapter: PrismaPg; store: PostgresLockStore } {
  return { adapter: new PrismaPg(pool), store: new PostgresLockStore(pool) };
}

export function drizzleStore(database: NodePgDatabase & { $client: PostgresPool }): PostgresLockStore {
  return new PostgresLockStore(database.$client);
}
