import { LockStoreError } from 'nestjs-distributed-lock';
import { PostgresLockStore } from 'nestjs-distributed-lock/postgres';
import type { Pool } from 'pg';
import { describePostgres } from './database/describe-postgres.js';
import { openPool } from './database/open-pool.js';
import { StartUpError } from './start-up.error.js';

/**
 * Locks with a pool of their own: transactions that have taken all connections of the other one would keep renewals
 * waiting until the leases are over. A store never closes its user's pool, so this one is closed with the store.
 */
class PooledLockStore extends PostgresLockStore {
  readonly #pool: Pool;

  constructor(pool: Pool) {
    super(pool);
    this.#pool = pool;
  }

  override async close(): Promise<void> {
    await super.close();
    await this.#pool.end();
  }
}

/** Makes the table of the locks where it is missing; throws `StartUpError` where the database does not answer. */
export async function openPostgresLocks(url: string): Promise<PostgresLockStore> {
  const store = new PooledLockStore(openPool('Locks', { connectionString: url, max: 4 }));
  try {
    await store.ensureSchema();
    return store;
  } catch (error) {
    await store.close();
    if (!(error instanceof LockStoreError)) {
      throw error;
    }
    throw new StartUpError(`Locks in ${describePostgres(url)}: ${error.detail} Check DATABASE_URL.`, { cause: error });
  }
}
