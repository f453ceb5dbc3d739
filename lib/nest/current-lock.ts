import { currentCall, type CallNode } from '../core/calls/call-tree.js';
import { Frame } from '../core/entering/frame.js';
import type { LockMode } from '../core/words/call-options.js';
import { LockConfigurationError } from '../core/words/errors.js';
import { checkKey } from '../core/words/lock-key.js';
import type { Lock } from '../core/words/lock.js';

/**
 * The innermost lock that the running code is inside of, or the innermost on `key`; undefined outside of any. Throws
 * `LockKeyError` for a key that is invalid.
 */
export function currentLock(key?: string): Lock | undefined {
  return innermost(key === undefined ? key : checkKey(key, 'currentLock'))?.lock;
}

function innermost(key: string | undefined): CallNode | undefined {
  for (let call = currentCall(); call; call = call.parent) {
    if (call.lock && (key === undefined || call.keys.includes(key))) {
      return call;
    }
  }
  return undefined;
}

/**
 * Makes sure that the running code is inside a lock on `key` whose lease still lasts, and returns that lock: a guard
 * for repositories. With `'write'`, a lock of read mode is not enough. Throws `LockConfigurationError` outside of such
 * a lock, `LockLostError` where the lease was lost, and `LockKeyError` without a key.
 */
export function assertLocked(key: string, mode: LockMode = 'read'): Lock {
  const call = innermost(checkKey(key, 'assertLocked'));
  const lock = call?.lock;
  if (lock && mode === 'write' && call instanceof Frame && call.leaseOn(key)?.shares !== undefined) {
    throw new LockConfigurationError(
      `Lock "${key}" is held in read mode by the code that runs here, which has to write. Give its method mode: 'write'.`,
      key,
    );
  }
  if (!lock) {
    throw new LockConfigurationError(
      `Lock "${key}" is not held by the code that runs here. Call it from a method with @DistributedLock, from withLock(), or inside lock.run().`,
      key,
    );
  }
  lock.assertHeld();
  return lock;
}
