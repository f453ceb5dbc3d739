import { setTimeout as sleep } from 'node:timers/promises';
import { createPool, type Pool } from 'mysql2/promise';
import { LockStoreError } from 'nestjs-distributed-lock';
import { MySqlLockStore } from 'nestjs-distributed-lock/mysql';
import { describeLockPlace } from './lock-place.js';
import { StartUpError } from './start-up.error.js';

/** How long the end of a pool may take, in milliseconds. */
const POOL_END_MS = 2_000;

/** A store never closes its user's pool, so this one is closed with the store. */
class PooledLockStore extends MySqlLockStore {
  readonly #pool: Pool;

  constructor(pool: Pool) {
    super(pool);
    this.#pool = pool;
  }

  override async close(): Promise<void> {
    await super.close();
    // It has ended also where it says that the server has closed a connection before, and waits for one that hangs.
    await Promise.race([this.#pool.end().catch(() => undefined), sleep(POOL_END_MS, undefined, { ref: false })]);
  }
}

/** Makes the tables of the locks where they are missing; throws `StartUpError` where the database does not answer. */
export async function openMySqlLocks(url: string): Promise<MySqlLockStore> {
  const store = new PooledLockStore(createPool({ uri: url, connectionLimit: 4, connectTimeout: 5_000 }));
  try {
    await store.ensureSchema();
    return store;
  } catch (error) {
    await store.close();
    if (!(error instanceof LockStoreError)) {
      throw error;
    }
    throw new StartUpError(`Locks in ${describeLockPlace({ store: 'mysql', url })}: ${error.detail} Check MYSQL_URL.`, { cause: error });
  }
}
