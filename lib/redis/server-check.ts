import { randomUUID } from 'node:crypto';
import { LockConfigurationError } from '../core/errors.js';
import type { LockStore } from '../core/lock-store.js';

/** The oldest version whose scripts may read the clock and write. */
const OLDEST = 6;

/** What is worth a warning in the reply to INFO; throws `LockConfigurationError` for a server that is too old. */
export function serverWarnings(info: string): string[] {
  const version = valueOf(info, 'redis_version');
  if (version !== undefined && Number.parseInt(version, 10) < OLDEST) {
    throw new LockConfigurationError(`RedisLockStore: the server is Redis ${version}. Use Redis ${OLDEST}.0 or later.`);
  }
  const policy = valueOf(info, 'maxmemory_policy');
  return policy === undefined || policy === 'noeviction'
    ? []
    : [`Redis evicts keys (maxmemory-policy is ${policy}), and locks with them. Set it to noeviction on the server of the locks.`];
}

/** Runs each script once, so that a right that is missing shows at start-up and not in the middle of a section. */
export async function tryRights(store: LockStore, process: string): Promise<void> {
  const key = `start-up check of ${process}`;
  const hold = { key, owner: randomUUID(), id: randomUUID(), fence: 0, ttlMs: 4_000, by: 'start-up check' };
  const { fence = 0 } = await store.acquire(hold);
  await store.join({ ...hold, fence, id: randomUUID() });
  await store.renew([{ ...hold, fence }]);
  await store.inspect(key);
  await store.forceRelease(key, fence);
  await store.release(hold);
}

function valueOf(info: string, field: string): string | undefined {
  return new RegExp(`^${field}:(.*?)\\r?$`, 'm').exec(info)?.[1];
}
