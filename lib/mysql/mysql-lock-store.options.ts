import { checkOptions, wrongOption } from '../core/words/check-options.js';
import { LockConfigurationError } from '../core/words/errors.js';
import { checkPools, whichPool } from '../sql/check-pools.js';
import { callbackPool, type CallbackPool } from './mysql-pool.js';

/** Options of the MySQL store. */
export interface MySqlLockStoreOptions {
  /**
   * Whether a process that waits polls for its turn every 50 ms, and keeps no two connections of the pool, by which the
   * process that hands the lock over would wake it by `KILL QUERY`. The store finds out by itself where waking does not
   * work, as behind some proxies. Default: `false`.
   */
  poll?: boolean | undefined;
}

/** A pool, and the database that it leads to. */
export interface CheckedPool {
  readonly pool: CallbackPool;
  readonly database: string;
}

/**
 * The pools as a list, with the databases that they lead to. Throws `LockConfigurationError` where a pool names no
 * database.
 */
export function checkMySqlPools(source: unknown): readonly CheckedPool[] {
  return checkPools(source, callbackPool, 'MySqlLockStore', PASS).map((pool, at, { length }) => {
    const { database } = pool.config.connectionConfig;
    if (!database) {
      const which = whichPool(at, length);
      throw new LockConfigurationError(`MySqlLockStore: ${which} names no database. Pass it with the option database of the pool.`);
    }
    return { pool, database };
  });
}

export function checkMySqlOptions(options: MySqlLockStoreOptions): { readonly poll: boolean } {
  checkOptions('MySqlLockStore', options, { poll: true });
  const { poll = false } = options;
  if (typeof poll !== 'boolean') {
    throw wrongOption('MySqlLockStore: poll', poll, 'Pass true to look for turns every 50 ms, or leave it out.');
  }
  return { poll };
}

const PASS = "Pass a pool of mysql2, such as createPool('mysql://user:password@host/database'), or a list of them.";
