import { wrongOption } from '../core/words/check-options.js';
import { checkOnUnavailable, type CallGiven, type OnUnavailable } from '../core/words/call-options.js';
import { LockConfigurationError, LockNotAcquiredError, LockStoreError, type NotAcquiredReason } from '../core/words/errors.js';
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
  readonly onUnavailable?: OnUnavailableOf<T> | 'run' | undefined;
}

/** No answer is asked for a call whose caller has gone, and for a mistake in the code. */
const PASSED: ReadonlySet<NotAcquiredReason> = new Set(['aborted', 'cycle', 'upgrade']);

/** The code that runs inside a lock. */
export type LockBody<T> = (lock: Lock) => T | PromiseLike<T>;

/** Whether every error with which a call does not get its lock is thrown. */
export function throwsAll({ onBusy, onUnavailable }: Answers<unknown>): boolean {
  return (onBusy === undefined || onBusy === 'throw') && !goesOn(onUnavailable);
}

/** Whether a call whose store is away has an answer. */
function goesOn(onUnavailable: unknown): boolean {
  return onUnavailable === 'run' || typeof onUnavailable === 'function';
}

/** Runs a call whose caller goes on without its lock. `without` runs the body without a permit. */
export async function runUnlessRefused<T>(
  answers: Answers<T>,
  body: LockBody<T>,
  run: (body: LockBody<T>) => Promise<T>,
  without: (error: UnavailableError) => T | PromiseLike<T>,
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
    return answerTo(error, answers.onUnavailable === 'run' ? { ...answers, onUnavailable: without } : answers);
  }
}

/** Throws the error itself where the caller has nothing to answer. */
function answerTo<T>(error: unknown, { onBusy, onUnavailable }: Answers<T>): T | PromiseLike<T> | undefined {
  if (error instanceof LockNotAcquiredError && !PASSED.has(error.reason)) {
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
export function askedOf(options: Omit<CallGiven, 'onUnavailable'> & Answers<unknown>): CallGiven {
  const { onBusy, onUnavailable } = options;
  const skips = onBusy === 'skip';
  if (!skips && !goesOn(onUnavailable)) {
    return options as CallGiven;
  }
  const wait = options.wait ?? (skips ? 0 : undefined);
  return { ...options, wait, onUnavailable: goesOn(onUnavailable) ? 'throw' : (onUnavailable as OnUnavailable | undefined) };
}

/** Throws `LockConfigurationError` for a value that is no answer. */
export function checkAnswers({ onBusy, onUnavailable }: Answers<unknown>, site: string, mayRun: boolean): void {
  if (onBusy !== undefined && onBusy !== 'throw' && onBusy !== 'skip' && typeof onBusy !== 'function') {
    throw wrongOption(`${site}: onBusy`, onBusy, "Use 'throw', 'skip' or a function.");
  }
  if (onUnavailable === 'run' && !mayRun) {
    throw new LockConfigurationError(
      `${site}: onUnavailable is 'run', which only a semaphore can have: the body of a lock never runs without its lock. Use 'wait', 'throw' or a function.`,
    );
  }
  if (onUnavailable !== undefined && !goesOn(onUnavailable)) {
    checkOnUnavailable(onUnavailable as OnUnavailable, site);
  }
}
