import type { ForcedListener, LockStore, Messages } from '../core/seam/lock-store.js';
import { checkPools } from '../sql/check-pools.js';
import { DatabaseStore, type OneDatabase } from '../sql/database-store.js';
import { PostgresDatabase } from './postgres-database.js';
import { PostgresKeys } from './postgres-keys.js';
import { checkPostgresOptions, type PostgresLockStoreOptions } from './postgres-lock-store.options.js';
import { PostgresLocks } from './postgres-locks.js';
import { poolOf, type PostgresPool } from './postgres-pool.js';

/**
 * Locks in a PostgreSQL database, or in several: a key lives in one of them, chosen by a hash of its name and the order
 * of the pools. So every process has to pass the same databases in the same order; each of several databases remembers
 * its number. Waiters are notified of their turn, first come first served.
 *
 * The pools are of `pg`, and are never closed. Each operation is one statement outside of any transaction.
 * `ensureSchema()` makes the tables; or run the SQL of `schemaSql()` by hand. Throws `LockConfigurationError` for
 * anything but a pool.
 */
export class PostgresLockStore extends DatabaseStore<PostgresKeys> implements LockStore, Messages {
  readonly shared = true;
  readonly permits = true;
  /** Undefined where no database is listened to. */
  readonly messages: Messages | undefined;
  readonly #databases: readonly PostgresDatabase[];
  declare protected locks: readonly PostgresLocks[];

  constructor(source: PostgresPool | readonly PostgresPool[], options: PostgresLockStoreOptions = {}) {
    super();
    const pools = checkPools(source, poolOf, 'PostgresLockStore', PASS);
    const { schema, listen } = checkPostgresOptions(options, pools);
    this.#databases = pools.map((pool, at) => new PostgresDatabase(pool, schema, listen[at]));
    this.nameRows('lock');
    this.messages = listen.every((address) => address === false) ? undefined : this;
  }

  /**
   * Creates the tables and functions in each database, or updates them; drops no data. Does nothing where they are
   * there already, for which the rights of the locks are enough. Many processes may call it at once, before or after
   * they have opened the store. Rejects with a `LockConfigurationError` where the user may not, or a later version
   * has made them.
   */
  async ensureSchema(): Promise<void> {
    await Promise.all(this.#databases.map((database) => database.ensureSchema()));
  }

  /** By the first database whose messages arrive here: every process listens to all of them. */
  async send(text: string, process?: string): Promise<void> {
    const at = this.#databases.findIndex(({ hearsTurns }) => hearsTurns === true);
    await (this.locks[Math.max(0, at)] as PostgresLocks).send(text, process);
  }

  onMessage(listener: (text: string) => void, until?: AbortSignal): void {
    this.listeners.onMessage(listener, until);
  }

  onForced(listener: ForcedListener, until?: AbortSignal): void {
    this.listeners.onForced(listener, until);
  }

  protected get databases(): readonly OneDatabase<PostgresKeys>[] {
    return this.#databases;
  }

  protected nameRows(prefix: string): PostgresKeys {
    const keys = new PostgresKeys(prefix);
    this.locks = this.#databases.map((database) => new PostgresLocks(database, keys, this.process));
    return keys;
  }
}

const PASS = 'Pass a Pool of pg, such as new Pool({ connectionString }), or a list of them.';
