import { LockConfigurationError } from '../core/words/errors.js';
import type { KeyKind } from '../core/seam/shares.js';
import { MOST_FENCE, MOST_HOLDS } from './protocol.js';

/** The error of a join that would be one hold too many. */
export function tooManyHolds(key: string): LockConfigurationError {
  return new LockConfigurationError(
    `Lock "${key}": ${MOST_HOLDS} holds are in it already, as many as a lock may have. Let fewer calls enter it by its ticket at a time.`,
    key,
  );
}

/** The error of an acquire of a lock on a key that is a semaphore now, and the other way round. */
export function otherKindOfKey(key: string, kind: KeyKind): LockConfigurationError {
  const other = kind === 'lock' ? 'semaphore' : 'lock';
  return new LockConfigurationError(
    `Key "${key}" is a ${kind} now, and was asked for as a ${other}. Give the ${other} a key of its own, such as "${key}:${other}".`,
    key,
  );
}

/**
 * The error of a grant whose fence would be too high. Fences are at least a clock's microseconds, so only a clock that
 * was wrong by more than two centuries counts that far. `remedy` says how the counter is reset.
 */
export function fenceTooHigh(key: string, counter: string, remedy: string): LockConfigurationError {
  return new LockConfigurationError(
    `Lock "${key}": its fence would be above ${MOST_FENCE}, since the clock of the store was wrong once (its counter is ${counter}). ` +
      `Put the clock right, let every resource forget fences above the time in microseconds, and ${remedy}.`,
    key,
  );
}

/**
 * The text of an error. Where a host has several addresses, Node gives an error for each, and no text for all of them.
 */
export function messageOf(error: Error): string {
  const { errors = [] } = error as { readonly errors?: readonly Error[] };
  return error.message || errors[0]?.message || error.name;
}
