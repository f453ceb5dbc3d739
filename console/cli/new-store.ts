import { LockConfigurationError } from '../../lib/core/words/errors.js';
import type { LockStore } from '../../lib/core/seam/lock-store.js';
import { PostgresLockStore } from '../../lib/stores/postgres/postgres-lock-store.js';
import type { PostgresPool } from '../../lib/stores/postgres/postgres-pool.js';
import { QuorumLockStore } from '../../lib/stores/quorum/quorum-lock-store.js';
import { RedisLockStore } from '../../lib/stores/redis/redis-lock-store.js';
import type { Address } from './address.js';

/** A store, and the pools that have to be ended after it. */
export interface NewStore {
  readonly store: LockStore;
  readonly pools: readonly (PostgresPool & { end(): Promise<void> })[];
}

/** Makes the store at an address, without connecting. Throws `LockConfigurationError`. */
export async function newStore({ kind, urls }: Address, schema: string | undefined): Promise<NewStore> {
  if (kind === 'postgres') {
    const pools = await poolsOf(urls);
    return { store: new PostgresLockStore(pools, { schema }), pools };
  }
  const [first = ''] = urls;
  return { store: kind === 'redis' ? new RedisLockStore(first) : new QuorumLockStore(urls), pools: [] };
}

async function poolsOf(urls: readonly string[]): Promise<NewStore['pools']> {
  const { default: pg } = await import('pg').catch((cause: unknown) => {
    throw new LockConfigurationError('--postgres needs the package pg. Install it: npm install pg.', '', { cause });
  });
  return urls.map((connectionString) => {
    const pool = new pg.Pool({ connectionString, max: 2, connectionTimeoutMillis: 3_000, application_name: 'nestjs-distributed-lock' });
    // A connection that breaks shows in the next statement.
    pool.on('error', () => undefined);
    return pool;
  });
}
