import { sql, type SQL } from 'drizzle-orm';
import type { MySql2Database } from 'drizzle-orm/mysql2';
import type { Knex } from 'knex';
import type { Pool } from 'mysql2/promise';
import { lockKey } from 'nestjs-distributed-lock';
import { rowLockSql, withRowLock, type RowLockClient } from 'nestjs-distributed-lock/mysql';
import type { DataSource } from 'typeorm';

export function knexRows(trx: Knex.Transaction): RowLockClient {
  return { query: (text, values) => trx.raw(text, values as Knex.RawBinding[]) };
}

export function drizzleRows(tx: { execute(query: SQL): PromiseLike<unknown> }): RowLockClient {
  const statement = (text: string, values: unknown[]): SQL =>
    sql(text.split('?') as unknown as TemplateStringsArray, ...values.map((value) => sql.param(value)));
  return { query: (text, values) => tx.execute(statement(text, values)) };
}

export async function makeTable(pool: Pool): Promise<void> {
  await pool.query(rowLockSql());
}

export async function creditByMysql2(pool: Pool, customerId: number, amount: number): Promise<void> {
  const connection = await pool.getConnection();
  try {
    await connection.query('SET TRANSACTION ISOLATION LEVEL READ COMMITTED');
    await connection.beginTransaction();
    await withRowLock(connection, lockKey`balance:${customerId}`, async () => {
      await connection.query('UPDATE balances SET amount = amount + ? WHERE customer_id = ?', [amount, customerId]);
    });
    await connection.commit();
  } catch (error) {
    await connection.rollback().catch(() => connection.destroy());
    throw error;
  } finally {
    connection.release();
  }
}

export async function creditByTypeorm(dataSource: DataSource, customerId: number, amount: number): Promise<void> {
  await dataSource.transaction('READ COMMITTED', (manager) =>
    withRowLock(manager, lockKey`balance:${customerId}`, async () => {
      await manager.query('UPDATE balances SET amount = amount + ? WHERE customer_id = ?', [amount, customerId]);
    }),
  );
}

export async function creditByKnex(knex: Knex, customerId: number, amount: number): Promise<void> {
  const body = (trx: Knex.Transaction) =>
    withRowLock(knexRows(trx), lockKey`balance:${customerId}`, async () => {
      await trx('balances').where({ customer_id: customerId }).increment('amount', amount);
    });
  await knex.transaction(body, { isolationLevel: 'read committed' });
}

export async function creditByDrizzle(database: MySql2Database, customerId: number, amount: number): Promise<void> {
  await database.transaction(
    (tx) =>
      withRowLock(drizzleRows(tx), lockKey`balance:${customerId}`, async () => {
        await tx.execute(sql`UPDATE balances SET amount = amount + ${amount} WHERE customer_id = ${customerId}`);
      }),
    { isolationLevel: 'read committed' },
  );
}
