export { MySqlLockStore } from './mysql-lock-store.js';
export type { MySqlLockStoreOptions } from './mysql-lock-store.options.js';
export type { MySqlPool } from './mysql-pool.js';
export { withRowLock, type RowLockClient, type RowLockOptions } from './row-lock/row-lock.js';
export { rowLockSql } from './row-lock/row-lock-table.js';
export { schemaSql } from './schema.js';
