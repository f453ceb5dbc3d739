import { LockConfigurationError, LockNotAcquiredError, LockStoreError, type LockError } from '../core/words/errors.js';
import { checkOptions, type OptionNames } from '../core/words/check-options.js';
import { parseDuration, type Duration } from '../core/words/duration.js';
import { checkLiteralKeys } from '../core/words/lock-key.js';

export const PLACE = 'withRowLock';

/**
 * Checks the arguments of `withRowLock`. Returns the keys, and how long to wait for them. Throws
 * `LockConfigurationError` for arguments that cannot be used. `noun` names the kind of client in messages.
 */
export function checkRowLock<Options extends { readonly wait?: Duration | undefined }>(
  client: unknown,
  key: string | readonly string[],
  body: unknown,
  options: Options,
  known: OptionNames<Options>,
  noun: string,
): { readonly keys: readonly string[]; readonly waitMs: number } {
  if (typeof (client as { readonly query?: unknown } | undefined)?.query !== 'function') {
    throw new LockConfigurationError(`${PLACE}: the ${noun} has no query(text, values). Pass the ${noun} on which BEGIN was called.`);
  }
  if (typeof body !== 'function') {
    throw new LockConfigurationError(`${PLACE}: there is no function to run inside the lock. Pass it after the key.`);
  }
  checkOptions(PLACE, options, known);
  return { keys: checkLiteralKeys(key, PLACE), waitMs: parseDuration(options.wait ?? '5s', 'wait', 0, PLACE) };
}

/** The facts of an attempt that failed. */
export interface FailedRowLock {
  readonly keys: readonly string[];
  readonly waitMs: number;
  readonly waitedMs: number;
}

/** The diagnosis of an attempt by the error of its database. */
export interface Diagnosis {
  /** The error without the statement and the values that drivers and ORMs add. */
  readonly cause: Error;
  /** The mistake in the use of the function, and how to mend it. */
  readonly misuse?: string | undefined;
  /** Why the lock was not acquired otherwise, and the next step. */
  readonly refusal?: { readonly reason: 'busy' | 'cycle'; readonly advice: string } | undefined;
  /** Whether the database answered. */
  readonly isKnown: boolean;
}

/** The error of an attempt; `database` is its name in messages. */
export function rowLockError({ keys, waitMs, waitedMs }: FailedRowLock, diagnosis: Diagnosis, database: string): LockError {
  const { cause, misuse, refusal, isKnown } = diagnosis;
  if (misuse !== undefined) {
    return misused(keys, misuse, cause);
  }
  const key = keys.join(', ');
  const subject = `Row lock "${key}"`;
  if (refusal) {
    const { reason, advice } = refusal;
    const limit = waitMs === 0 ? 'at once' : `within ${waitMs} ms`;
    const why = reason === 'busy' ? ` ${limit}: another transaction holds it` : ': transactions wait for each other (a deadlock)';
    return new LockNotAcquiredError(`${subject} was not acquired${why}. ${advice}`, key, { reason, waitedMs, cause });
  }
  const did = isKnown ? 'failed' : 'did not answer';
  const message = `${subject}: ${database} ${did}: ${cause.message}. Roll the transaction back.`;
  return new LockStoreError(message, key, { cause, unknown: !isKnown });
}

/** The error of a wrong use of the function. */
export function misused(keys: readonly string[], misuse: string, cause?: Error): LockConfigurationError {
  const key = keys.join(', ');
  return new LockConfigurationError(`Row lock "${key}": ${misuse}`, key, cause && { cause });
}

/** A field of an error that a driver or an ORM threw. */
export function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}
