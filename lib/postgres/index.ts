export { PostgresLockStore } from './postgres-lock-store.js';
export type { ListenAddress, PostgresLockStoreOptions } from './postgres-lock-store.options.js';
export type { PostgresPool } from './postgres-pool.js';
export { withRowLock, type RowLockClient, type RowLockOptions } from './row-lock/row-lock.js';
export { rowLockSql } from './row-lock/row-lock-table.js';
export { schemaSql } from './schema.js';
export type { SchemaOptions } from './schema-name.js';
