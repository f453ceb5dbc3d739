import { LockConfigurationError } from '../../core/errors.js';

/** The highest fence: numbers above it are not told apart. */
export const MOST_FENCE = Number.MAX_SAFE_INTEGER;

/** Fences are at least a clock's microseconds, so only a clock that was wrong by more than two centuries counts so far. */
export function fenceTooHigh(key: string, counter: string, remedy: string): LockConfigurationError {
  return new LockConfigurationError(
    `Lock "${key}": its fence would be above ${MOST_FENCE}, since the clock of the store was wrong once (its counter is ${counter}). ` +
      `Put the clock right, let every resource forget fences above the time in microseconds, and ${remedy}.`,
    key,
  );
}
