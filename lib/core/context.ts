import { AsyncLocalStorage } from 'node:async_hooks';
import type { LockFrame } from './lock-frame.js';

/** The innermost locked call that the running code belongs to, whichever application it is of. */
const storage = new AsyncLocalStorage<LockFrame | undefined>();

/** Runs `fn` as part of a locked call, or of none. */
export function runInFrame<T>(frame: LockFrame | undefined, fn: () => T): T {
  return storage.run(frame, fn);
}

/** The nearest enclosing locked call that has not left. */
export function currentFrame(): LockFrame | undefined {
  return skipLeft(storage.getStore());
}

/** The frame itself, or the nearest of its ancestors that has not left. */
export function skipLeft(frame: LockFrame | undefined): LockFrame | undefined {
  let at = frame;
  while (at?.hasLeft) {
    at = at.parent;
  }
  return at;
}

/** The parent that still holds; those that have left are unlinked, so that chains of calls do not grow. */
export function liveParent(frame: LockFrame): LockFrame | undefined {
  frame.parent = skipLeft(frame.parent);
  return frame.parent;
}

export function isAncestor(ancestor: LockFrame, frame: LockFrame): boolean {
  for (let at = liveParent(frame); at; at = liveParent(at)) {
    if (at === ancestor) {
      return true;
    }
  }
  return false;
}

/**
 * Runs `fn` without the current locks, for work handed to somebody else: what it calls acquires anew and does not
 * belong to the caller's locks.
 */
export function outsideLocks<T>(fn: () => T): T {
  return runInFrame(undefined, fn);
}
