import { LockConfigurationError, LockNotAcquiredError } from '../core/words/errors.js';
import type { Lock } from '../core/words/lock.js';

/**
 * What a call does instead of throwing `LockNotAcquiredError`, unless it was aborted or closes a cycle. Does not catch
 * errors of the body.
 */
export type OnBusy<T> = 'throw' | 'skip' | ((error: LockNotAcquiredError) => T | PromiseLike<T>);

/** What runs inside a lock. */
export type LockBody<T> = (lock: Lock) => T | PromiseLike<T>;

/** Runs a call whose caller goes on where the lock is busy. */
export async function runUnlessBusy<T>(
  onBusy: Exclude<OnBusy<T>, 'throw'>,
  body: LockBody<T>,
  run: (body: LockBody<T>) => Promise<T>,
): Promise<T | undefined> {
  let isIn = false;
  try {
    return await run((lock) => {
      isIn = true;
      return body(lock);
    });
  } catch (error) {
    // What the body throws passes unchanged, also an error of a lock inside it.
    if (isIn || !(error instanceof LockNotAcquiredError) || error.reason === 'aborted' || error.reason === 'cycle') {
      throw error;
    }
    return onBusy === 'skip' ? undefined : onBusy(error);
  }
}

/** Throws `LockConfigurationError` for anything but `'throw'`, `'skip'`, a function or `undefined`. */
export function checkOnBusy(onBusy: unknown, site: string): void {
  if (onBusy !== undefined && onBusy !== 'throw' && onBusy !== 'skip' && typeof onBusy !== 'function') {
    throw new LockConfigurationError(`${site}: onBusy is ${JSON.stringify(onBusy)}. Use 'throw', 'skip' or a function.`);
  }
}
