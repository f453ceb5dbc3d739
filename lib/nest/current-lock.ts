import { currentFrame, liveParent } from '../core/context.js';
import { LockConfigurationError } from '../core/errors.js';
import type { Lock } from '../core/lock.js';

/** The innermost lock that the running code is inside of, or the innermost on `key`; undefined outside of any. */
export function currentLock(key?: string): Lock | undefined {
  for (let frame = currentFrame(); frame; frame = liveParent(frame)) {
    if (key === undefined || frame.keys.includes(key)) {
      return frame.asGiven;
    }
  }
  return undefined;
}

/**
 * Makes sure that the running code is inside a lock on `key` whose lease still lasts, and returns that lock: a guard for
 * repositories. Throws `LockConfigurationError` outside of it, and `LockLostError` where the lease was lost.
 */
export function assertLocked(key: string): Lock {
  const lock = currentLock(key);
  if (!lock) {
    throw new LockConfigurationError(
      `Lock "${key}" is not held by the code that runs here. Call it from a method with @DistributedLock, from withLock(), or inside lock.run().`,
      key,
    );
  }
  lock.assertHeld();
  return lock;
}
