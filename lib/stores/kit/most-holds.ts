import { LockConfigurationError } from '../../core/errors.js';

/** How many holds a lock may have at once: a ticket that is passed on and on must not fill the store. */
export const MOST_HOLDS = 1_000;

/** The error of a join that would be one hold too many. */
export function tooManyHolds(key: string): LockConfigurationError {
  return new LockConfigurationError(
    `Lock "${key}": ${MOST_HOLDS} holds are in it already, as many as a lock may have. Let fewer calls enter it by its ticket at a time.`,
    key,
  );
}
