export { MySqlLockStore } from './mysql-lock-store.js';
export type { MySqlLockStoreOptions } from './mysql-lock-store.options.js';
export type { MySqlPool } from './mysql-pool.js';
export { withRowLock, type RowLockOptions } from './row-lock/row-lock.js';
export type { RowLockClient } from './row-lock/row-lock-session.js';
export { rowLockSql } from './row-lock/row-lock-table.js';
export { schemaSql } from './schema.js';
