import { LockConfigurationError, LockNotAcquiredError, LockStoreError, type LockError } from '../../core/words/errors.js';

/** What is known of an attempt that failed. */
export interface FailedRowLock {
  readonly keys: readonly string[];
  readonly waitMs: number;
  readonly waitedMs: number;
}

/** The number with which the server says that there is no such savepoint. */
export const NO_SAVEPOINT = 1305;

const STALE =
  'the transaction would not see what the last holder wrote, because it has read something before the lock and keeps that snapshot. ' +
  'Roll it back. Lock first in the transaction, or use READ COMMITTED: SET TRANSACTION ISOLATION LEVEL READ COMMITTED before BEGIN.';
const READ_ONLY = 'the transaction or the server is read-only. Use a transaction that may write, on the primary server.';
const NO_RIGHT = 'the user lacks a right. Grant SELECT, INSERT and UPDATE on the table distributed_lock_row.';
const NO_TABLE =
  'the table distributed_lock_row is missing in the database of the connection, or is not ours. Run what rowLockSql() returns.';

/** What is wrong with the use of the function, and how to mend it, by the number of the server's error. */
const MISUSE: Readonly<Record<number, string>> = {
  [NO_SAVEPOINT]:
    'the connection is not inside a transaction, so that the lock would end at once. Pass the connection on which BEGIN was called, not a pool.',
  // innodb_snapshot_isolation of MariaDB.
  1020: STALE,
  1044: NO_RIGHT,
  1142: NO_RIGHT,
  1143: NO_RIGHT,
  1046: 'the connection has no database. Name one when you connect.',
  1054: NO_TABLE,
  1146: NO_TABLE,
  1290: READ_ONLY,
  1792: READ_ONLY,
  1836: READ_ONLY,
};

/** 1205 is a wait that ended, and NOWAIT on MariaDB; 3572 is NOWAIT on MySQL. */
const BUSY: ReadonlySet<number> = new Set([1205, 3572]);
const DEADLOCK = 1213;

/** The error of an attempt; `error` is what the connection threw, whichever driver or ORM it belongs to. */
export function toRowLockError(error: unknown, { keys, waitMs, waitedMs }: FailedRowLock): LockError {
  const { cause, number } = plainCause(error);
  const key = keys.join(', ');
  const subject = `Row lock "${key}"`;
  const misuse = MISUSE[number];
  if (misuse !== undefined) {
    return new LockConfigurationError(`${subject}: ${misuse}`, key, { cause });
  }
  if (BUSY.has(number)) {
    const limit = waitMs === 0 ? 'at once' : `within ${waitMs} ms`;
    const message =
      `${subject} was not acquired ${limit}: another transaction holds it. The transaction is still open: roll it back, ` +
      'and raise wait or shorten the others.';
    return new LockNotAcquiredError(message, key, { reason: 'busy', waitedMs, cause });
  }
  if (number === DEADLOCK) {
    const message =
      `${subject} was not acquired: transactions wait for each other (a deadlock). The server has rolled the whole transaction back: ` +
      'repeat it; it is rare where all keys are locked at once with a list.';
    return new LockNotAcquiredError(message, key, { reason: 'cycle', waitedMs, cause });
  }
  const did = number === 0 ? 'did not answer' : 'failed';
  return new LockStoreError(`${subject}: the database ${did}: ${cause.message}. Roll the transaction back.`, key, {
    cause,
    unknown: number === 0,
  });
}

/** The error of a transaction that reads from before the lock. */
export function staleSnapshot(keys: readonly string[]): LockConfigurationError {
  return new LockConfigurationError(`Row lock "${keys.join(', ')}": ${STALE}`, keys.join(', '));
}

/** The error of a body that ended the transaction; or what else failed at its end. */
export function toEndError(error: unknown, failed: FailedRowLock): LockError {
  if (errorNumber(error) !== NO_SAVEPOINT) {
    return toRowLockError(error, failed);
  }
  const key = failed.keys.join(', ');
  return new LockConfigurationError(
    `Row lock "${key}": the transaction ended inside the body, and the lock with it; what came after was not excluded. ` +
      'A COMMIT, DDL such as ALTER TABLE or TRUNCATE, a deadlock, or a rollback to before the lock does that. ' +
      'What was committed stays. Make sure that the body does none of these.',
    key,
    { cause: plainCause(error).cause },
  );
}

/** A copy of the server's error without the statement and the values that drivers and ORMs add; 0: not of a server. */
function plainCause(error: unknown): { cause: Error; number: number } {
  const found = serverError(error) ?? error;
  const number = errorNumber(found);
  const cause = new Error(String(field(found, 'sqlMessage') ?? field(found, 'message') ?? found));
  const code = field(found, 'code');
  return { cause: Object.assign(cause, typeof code === 'string' ? { code } : {}, number === 0 ? {} : { errno: number }), number };
}

function errorNumber(error: unknown): number {
  const number = field(serverError(error), 'errno');
  return typeof number === 'number' ? number : 0;
}

/** Drizzle keeps it as the cause. Node's errors, such as EPIPE, have numbers below zero. */
function serverError(error: unknown): unknown {
  return [error, field(error, 'driverError'), field(error, 'cause')].find((one) => {
    const number = field(one, 'errno');
    return typeof number === 'number' && number >= 1000;
  });
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}
