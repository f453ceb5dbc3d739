import type { LockModuleOptions } from 'nestjs-distributed-lock';
import { makeLockStore } from './lock-store.js';
import type { Settings } from './settings.js';

export async function lockOptions({ locks, lockWait }: Settings): Promise<LockModuleOptions> {
  return { store: await makeLockStore(locks), wait: lockWait };
}
