import type { LockStore } from '../core/seam/lock-store.js';
import { DatabaseStore, type OneDatabase } from '../sql/database-store.js';
import { MySqlDatabase } from './mysql-database.js';
import { MySqlKeys } from './mysql-keys.js';
import { checkMySqlOptions, checkMySqlPools, type MySqlLockStoreOptions } from './mysql-lock-store.options.js';
import { MySqlLocks } from './mysql-locks.js';
import type { MySqlPool } from './mysql-pool.js';

/**
 * Locks in a MySQL or MariaDB database, or in several: a key lives in one of them, chosen by a hash of its name and the
 * order of the pools. So every process has to pass the same databases in the same order; each of several databases
 * remembers its number. Waiters have their turn first come first served.
 *
 * The pools are of `mysql2`, with callbacks or promises, and are never closed. Each operation is one statement, which
 * commits by itself. `ensureSchema()` makes the tables and procedures; or run the statements of `schemaSql()` by hand.
 * Throws `LockConfigurationError` for anything but a pool with a database.
 */
export class MySqlLockStore extends DatabaseStore<MySqlKeys> implements LockStore {
  readonly #databases: readonly MySqlDatabase[];

  constructor(source: MySqlPool | readonly MySqlPool[], options: MySqlLockStoreOptions = {}) {
    super();
    const pools = checkMySqlPools(source);
    const { poll } = checkMySqlOptions(options);
    this.#databases = pools.map((pool) => new MySqlDatabase(pool, poll));
    this.nameRows('lock');
  }

  /**
   * Creates the tables and procedures in each database, beside those of other versions; drops no data. Does nothing
   * where they are there already, for which the rights of the locks are enough; procedures that somebody made with
   * another `sql_mode` are made anew. Many processes may call it at once, before or after they have opened the store.
   * Rejects with a `LockConfigurationError` where the user may not create them, and for a table of another version.
   */
  async ensureSchema(): Promise<void> {
    await Promise.all(this.#databases.map((database) => database.ensureSchema()));
  }

  protected get databases(): readonly OneDatabase<MySqlKeys>[] {
    return this.#databases;
  }

  protected nameRows(prefix: string): MySqlKeys {
    const keys = new MySqlKeys(prefix);
    this.locks = this.#databases.map((database) => new MySqlLocks(database, keys, this.process));
    return keys;
  }
}
