import { wrongOption } from '../core/words/check-options.js';
import { checkOnUnavailable, type LockOptions, type OnUnavailable } from '../core/words/call-options.js';
import { LockConfigurationError, LockNotAcquiredError, LockStoreError } from '../core/words/errors.js';
import type { Lock } from '../core/words/lock.js';

/**
 * The way of a call that meets a busy lock, in place of `LockNotAcquiredError`, unless it was aborted or closes a
 * cycle. Does not catch errors of the body.
 */
export type OnBusy<T> = 'throw' | 'skip' | ((error: LockNotAcquiredError) => T | PromiseLike<T>);

/** The error of a store that did not answer, or that refuses every call, since a right or a table is missing. */
export type UnavailableError = LockStoreError | LockConfigurationError;

/**
 * The way of a call whose store is away. A function does as `'throw'` does, and its result is the result of the call.
 * Does not catch errors of the body.
 */
export type OnUnavailableOf<T> = OnUnavailable | ((error: UnavailableError) => T | PromiseLike<T>);

/** The answers of a call to its refusals. */
export interface Answers<T> {
  readonly onBusy?: OnBusy<T> | undefined;
  readonly onUnavailable?: OnUnavailableOf<T> | undefined;
}

/** The code that runs inside a lock. */
export type LockBody<T> = (lock: Lock) => T | PromiseLike<T>;

/** Whether every error with which a call does not get its lock is thrown. */
export function throwsAll({ onBusy, onUnavailable }: Answers<unknown>): boolean {
  return (onBusy === undefined || onBusy === 'throw') && typeof onUnavailable !== 'function';
}

/** Runs a call whose caller goes on without its lock. */
export async function runUnlessRefused<T>(
  answers: Answers<T>,
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
    // Errors of the body pass unchanged, also the error of a lock inside it.
    if (isIn) {
      throw error;
    }
    return answerTo(error, answers);
  }
}

/** Throws the error itself where the caller has nothing to answer. */
function answerTo<T>(error: unknown, { onBusy, onUnavailable }: Answers<T>): T | PromiseLike<T> | undefined {
  if (error instanceof LockNotAcquiredError && error.reason !== 'aborted' && error.reason !== 'cycle') {
    if (onBusy === 'skip') {
      return undefined;
    }
    if (typeof onBusy === 'function') {
      return onBusy(error);
    }
  }
  if (typeof onUnavailable === 'function' && isUnavailable(error)) {
    return onUnavailable(error);
  }
  throw error;
}

function isUnavailable(error: unknown): error is UnavailableError {
  return error instanceof LockStoreError || (error instanceof LockConfigurationError && error.ofStore);
}

/** The options of a call as core knows them: core throws where the caller has an answer. */
export function askedOf(options: Omit<LockOptions, 'onUnavailable'> & Answers<unknown>): LockOptions {
  const { onBusy, onUnavailable } = options;
  const skips = onBusy === 'skip';
  if (!skips && typeof onUnavailable !== 'function') {
    return options as LockOptions;
  }
  const wait = options.wait ?? (skips ? 0 : undefined);
  return { ...options, wait, onUnavailable: typeof onUnavailable === 'function' ? 'throw' : onUnavailable };
}

/** Throws `LockConfigurationError` for a value that is no answer. */
export function checkAnswers({ onBusy, onUnavailable }: Answers<unknown>, site: string): void {
  if (onBusy !== undefined && onBusy !== 'throw' && onBusy !== 'skip' && typeof onBusy !== 'function') {
    throw wrongOption(`${site}: onBusy`, onBusy, "Use 'throw', 'skip' or a function.");
  }
  if (onUnavailable !== undefined && typeof onUnavailable !== 'function') {
    checkOnUnavailable(onUnavailable, site);
  }
}
