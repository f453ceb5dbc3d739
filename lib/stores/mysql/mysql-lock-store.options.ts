import { checkOptions } from '../../core/words/check-options.js';
import { LockConfigurationError } from '../../core/words/errors.js';
import { describe } from '../../core/words/lock-key.js';
import { shown } from '../../core/words/shown.js';
import { callbackPool, type CallbackPool } from './mysql-pool.js';

/** Options of the MySQL store. */
export interface MySqlLockStoreOptions {
  /**
   * Whether a process that waits looks for its turn every 50 ms, rather than keep two connections of the pool, by which the process that
   * hands the lock over wakes it by `KILL QUERY`. The store finds out by itself where that does not work, as behind some proxies.
   * Default: `false`.
   */
  poll?: boolean | undefined;
}

/** A pool, and the database that it leads to. */
export interface CheckedPool {
  readonly pool: CallbackPool;
  readonly database: string;
}

/** The pools as a list. Throws `LockConfigurationError` where something is not a pool, names no database, or is in the list twice. */
export function checkPools(source: unknown): readonly CheckedPool[] {
  const given: unknown[] = Array.isArray(source) ? source : [source];
  if (given.length === 0) {
    throw new LockConfigurationError(`MySqlLockStore: the pool is missing. ${PASS}`);
  }
  const checked = given.map((value, at) => {
    const which = given.length > 1 ? `pool ${at + 1} of ${given.length}` : 'the pool';
    const pool = callbackPool(value);
    if (!pool) {
      throw new LockConfigurationError(`MySqlLockStore: ${which} is ${describe(value)}. ${PASS}`);
    }
    const { database } = pool.config.connectionConfig;
    if (!database) {
      throw new LockConfigurationError(`MySqlLockStore: ${which} names no database. Pass it with the option database of the pool.`);
    }
    return { pool, database };
  });
  if (new Set(checked.map(({ pool }) => pool)).size < checked.length) {
    throw new LockConfigurationError(
      'MySqlLockStore: a pool is in the list twice. Pass each database once; the position of a pool in the list decides which keys live there.',
    );
  }
  return checked;
}

export function checkMySqlOptions(options: MySqlLockStoreOptions): { readonly poll: boolean } {
  checkOptions('MySqlLockStore', options, { poll: true });
  const { poll = false } = options;
  if (typeof poll !== 'boolean') {
    throw new LockConfigurationError(`MySqlLockStore: poll is ${shown(poll)}. Pass true to look for turns every 50 ms, or leave it out.`);
  }
  return { poll };
}

const PASS = "Pass a pool of mysql2, such as createPool('mysql://user:password@host/database'), or a list of them.";
