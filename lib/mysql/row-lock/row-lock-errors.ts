import type { LockError } from '../../core/words/errors.js';
import { field, misused, rowLockError, type Diagnosis, type FailedRowLock } from '../../sql/row-lock.js';

/** The number with which the server says that there is no such savepoint. */
const NO_SAVEPOINT = 1305;

export const STALE =
  'the transaction would not see what the last holder wrote, because it has read something before the lock and keeps that snapshot. ' +
  'Roll it back. Lock first in the transaction, or use READ COMMITTED: SET TRANSACTION ISOLATION LEVEL READ COMMITTED before BEGIN.';
const ENDED =
  'the transaction ended inside the body, and the lock with it; what came after was not excluded. ' +
  'A COMMIT, DDL such as ALTER TABLE or TRUNCATE, a deadlock, or a rollback to before the lock does that. ' +
  'What was committed stays. Make sure that the body does none of these.';
const READ_ONLY = 'the transaction or the server is read-only. Use a transaction that may write, on the primary server.';
const NO_RIGHT = 'the user lacks a right. Grant SELECT, INSERT and UPDATE on the table distributed_lock_row.';
const NO_TABLE =
  'the table distributed_lock_row is missing in the database of the connection, or is not ours. Run what rowLockSql() returns.';

/** The mistakes in the use of the function, and how to mend them, by the number of the server's error. */
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

const BUSY: Diagnosis['refusal'] = {
  reason: 'busy',
  advice: 'The transaction is still open: roll it back, and raise wait or shorten the others.',
};

/** Why a lock was not acquired, by the number of the server's error. */
const REFUSALS: Readonly<Record<number, Diagnosis['refusal']>> = {
  // A wait that ended, and NOWAIT on MariaDB.
  1205: BUSY,
  // NOWAIT on MySQL.
  3572: BUSY,
  1213: {
    reason: 'cycle',
    advice: 'The server has rolled the whole transaction back: repeat it; it is rare where all keys are locked at once with a list.',
  },
};

/** The error of an attempt; `error` is the error of the connection, whichever driver or ORM it belongs to. */
export function toRowLockError(error: unknown, failed: FailedRowLock): LockError {
  const { cause, number } = plainCause(error);
  const diagnosis = { cause, misuse: MISUSE[number], refusal: REFUSALS[number], isKnown: number !== 0 };
  return rowLockError(failed, diagnosis, 'the database');
}

/** The error of a body that ended the transaction; or another failure at its end. */
export function toEndError(error: unknown, failed: FailedRowLock): LockError {
  if (errorNumber(error) !== NO_SAVEPOINT) {
    return toRowLockError(error, failed);
  }
  return misused(failed.keys, ENDED, plainCause(error).cause);
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
