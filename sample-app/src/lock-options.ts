import { MemoryLockStore, RedisLockStore, type LockModuleOptions } from 'nestjs-distributed-lock';
import type { Settings } from './settings.js';

/** Locks in Redis exclude across processes; locks in memory only within this one. */
export function lockOptions({ redisUrl, lockWait }: Settings): LockModuleOptions {
  return {
    store: redisUrl === undefined ? new MemoryLockStore() : new RedisLockStore(redisUrl),
    wait: lockWait,
  };
}
