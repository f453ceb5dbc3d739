import type { Connection, Pool } from 'mysql2/promise';
import { MySqlLockStore, schemaSql, type MySqlPool } from 'nestjs-distributed-lock/mysql';
import type { DataSource } from 'typeorm';

declare const pool: Pool;

export async function make(): Promise<void> {
  const store = new MySqlLockStore(pool);
  await store.ensureSchema();
}

export async function migrate(connection: Connection): Promise<void> {
  for (const sql of schemaSql()) {
    await connection.query(sql).catch((error: { errno?: number }) => {
      if (error.errno !== 1304) {
        throw error;
      }
    });
  }
}

export function typeormMySqlStore(dataSource: DataSource): MySqlLockStore {
  return new MySqlLockStore((dataSource.driver as unknown as { pool: MySqlPool }).pool);
}
