import { MemoryLockStore, QuorumLockStore, RedisLockStore, type LockStore } from 'nestjs-distributed-lock';
import type { LockPlace } from './lock-place.js';
import { openMySqlLocks } from './mysql-locks.js';
import { openPostgresLocks } from './postgres-locks.js';

/** Locks in memory exclude only within this process, and all others across processes. */
export async function makeLockStore(place: LockPlace): Promise<LockStore> {
  switch (place.store) {
    case 'memory':
      return new MemoryLockStore();
    case 'redis':
      return new RedisLockStore(place.url);
    case 'quorum':
      return new QuorumLockStore(place.urls);
    case 'postgres':
      return openPostgresLocks(place.url);
    case 'mysql':
      return openMySqlLocks(place.url);
  }
}
