import { isLockError, LockConfigurationError, LockStoreError, type LockError } from '../../core/words/errors.js';
import { fenceTooHigh } from '../kit/refusals.js';
import { LEASE } from './tables.js';

/** The statement got no reply in time; whether it was carried out is unknown. */
export class StatementTimeout extends Error {
  constructor(limitMs: number) {
    super(`no reply within ${Math.round(limitMs)} ms`);
  }
}

/** The statement was not sent, because there was no connection for it. */
export class NotSent extends Error {
  constructor(cause: Error | string = 'the pool gave none') {
    super(typeof cause === 'string' ? cause : cause.message, { cause });
  }
}

/** The statement would be committed with others that somebody else began: it was undone with the connection. */
export class NotCommitted extends Error {
  constructor() {
    super('the session does not commit by itself');
  }
}

/** Codes of errors of the server: https://mariadb.com/docs/server/reference/error-codes. */
const ERRORS = {
  /** Two transactions waited for each other, or one waited too long for a row. The procedure has rolled back. */
  conflict: [1205, 1213],
  /** The last user of the connection left a transaction open: nothing was done. */
  inTransaction: [1568],
  /** The user, the password or the database is wrong. */
  access: [1045, 1049, 1698],
  /** The user lacks a right on the database, a table or a procedure. */
  right: [1044, 1142, 1143, 1227, 1370],
  /** There is no such table or procedure, or no such parameter. */
  missing: [1146, 1305, 1318, 1054],
  /** The server is read-only, as a replica is. */
  readOnly: [1290, 1792, 1836],
  /** The statement was ended: it may have been committed before. */
  ended: [1053, 1077, 1317, 1927, 1969, 3024, 3169],
  /** Nothing was done, and it may be sent again when that is over. */
  later: [1040, 1203, 1226, 1041, 1135, 1021, 1114],
  /** `SIGNAL` of the procedures. */
  signal: [1644],
  /** Statements are replicated by their text, which READ COMMITTED does not allow. */
  binlog: [1665],
  /** A key may not be as long as those of the tables. */
  pageSize: [1071],
  /** All connections of the server have prepared as many statements as they may together. */
  prepared: [1461],
} as const;

type Kind = keyof typeof ERRORS;

function isA(error: unknown, kind: Kind): boolean {
  const code = error instanceof Error && 'errno' in error ? error.errno : undefined;
  return (ERRORS[kind] as readonly unknown[]).includes(code);
}

/** Whether nothing was done, and the statement may be sent again at once, by the same connection. */
export function isConflict(error: unknown): boolean {
  return isA(error, 'conflict');
}

/** Whether the connection was in a transaction of somebody else. */
export function isInTransaction(error: unknown): boolean {
  return isA(error, 'inTransaction');
}

/** Whether the server answered with an error, and did nothing. */
export function isRefusal(error: unknown): boolean {
  if (error instanceof NotCommitted) {
    return true;
  }
  return error instanceof Error && 'sqlState' in error && !('fatal' in error && error.fatal === true) && !isA(error, 'ended');
}

/**
 * The error of a failed statement. An error that the server answered is a known failure, except one that ended the statement; a
 * timeout or a broken connection leaves it unknown whether the statement was carried out.
 */
export function toLockError(error: unknown, key: string): LockError {
  if (isLockError(error)) {
    return error;
  }
  const failure = error instanceof Error ? error : new Error(String(error));
  const notSent = failure instanceof NotSent;
  const source = notSent && failure.cause instanceof Error ? failure.cause : failure;
  const cause = copyOf(source);
  const counter = /^FENCE (\d+)$/.exec(source.message)?.[1];
  if (counter !== undefined && isA(source, 'signal')) {
    return fenceTooHigh(key, counter, `delete the row of the key from ${LEASE}`);
  }
  const subject = key === '' ? '' : `Lock "${key}": `;
  const kind = (Object.keys(CURES) as (keyof typeof CURES)[]).find((each) => isA(source, each));
  if (kind) {
    return new LockConfigurationError(`${subject}MySQL refused: ${cause.message}. ${CURES[kind]}`, key, { cause });
  }
  if (!notSent && !isRefusal(source)) {
    return new LockStoreError(
      `${subject}MySQL did not answer: ${cause.message}. Make sure that it runs and can be reached from here.`,
      key,
      {
        cause,
        unknown: true,
      },
    );
  }
  const before = notSent ? 'there is no connection: ' : '';
  return new LockStoreError(`${subject}MySQL failed: ${before}${cause.message}${nextStep(source)}`, key, { cause, unknown: false });
}

/** What to do where nothing was done. Not a `LockConfigurationError`: it may be over soon, and a release is sent again until then. */
function nextStep(error: Error): string {
  if (isA(error, 'prepared')) {
    return '. Raise max_prepared_stmt_count of the server: the locks prepare about 15 statements on each connection of the pool.';
  }
  const reason = isConflict(error) ? ' (another transaction has locked the row)' : isA(error, 'readOnly') ? READ_ONLY : '';
  return `${reason}. The call may be repeated once that is over.`;
}

/** The error of a command that twice in a row reached the server after its sender had stopped waiting. */
export function tooLate(key: string): LockStoreError {
  return new LockStoreError(
    `Lock "${key}": MySQL was reached too late, and granted nothing. Find out what holds up the network, or raise ttl.`,
    key,
    { unknown: false },
  );
}

const READ_ONLY = ' (the server is read-only, as a replica is)';

const CURES = {
  access: 'Correct the user, password and database of the pool given to MySqlLockStore.',
  right:
    'Grant the user SELECT, INSERT, UPDATE and DELETE on the tables distributed_lock_*, and EXECUTE on the procedures, of that database; ' +
    'and CREATE, CREATE ROUTINE and ALTER ROUTINE, to make them by ensureSchema().',
  missing:
    'Call ensureSchema() of the store, or run what schemaSql() returns, to create the tables and procedures in their present version.',
  pageSize: 'The tables of the locks need a server with an innodb_page_size of 16k or more. Keep the locks on another one.',
  binlog: 'Set binlog_format to ROW or MIXED.',
} as const satisfies Partial<Record<Kind, string>>;

/** The error without the statement that the driver adds to it: its values must not reach a log. */
function copyOf(error: Error): Error {
  // Where a host has several addresses, Node gives an error for each, and none for all of them.
  const [first] = error instanceof AggregateError ? (error.errors as Error[]) : [];
  const copy = new Error((error.message || first?.message || error.name).replace(/\.$/, ''));
  copy.name = error.name;
  return 'code' in error ? Object.assign(copy, { code: error.code }) : copy;
}
