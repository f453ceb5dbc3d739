import { MemoryLockStore, RedisLockStore, type LockStore, type RedisSource } from 'nestjs-distributed-lock';
import { QuorumLockStore } from 'nestjs-distributed-lock/quorum';
import { createClient } from 'redis';
import type { LockPlace } from './lock-place.js';
import { openMySqlLocks } from './mysql-locks.js';
import { openPostgresLocks } from './postgres-locks.js';

/** Locks in memory exclude only within this process, and all others across processes. */
export async function makeLockStore(place: LockPlace): Promise<LockStore> {
  switch (place.store) {
    case 'memory':
      return new MemoryLockStore();
    case 'redis':
      return new RedisLockStore(connectionTo(place.url, place));
    case 'quorum':
      return new QuorumLockStore(place.urls.map((url) => connectionTo(url, place)));
    case 'postgres':
      return openPostgresLocks(place.url);
    case 'mysql':
      return openMySqlLocks(place.url);
  }
}

/** With a URL, the store uses ioredis. A client of node-redis it duplicates. */
function connectionTo(url: string, { client }: { readonly client?: string }): RedisSource {
  return client === 'node-redis' ? createClient({ url }) : url;
}
