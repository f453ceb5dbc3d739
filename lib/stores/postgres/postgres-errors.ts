import { fenceTooHigh } from '../kit/refusals.js';
import { LockConfigurationError, LockStoreError, type LockError } from '../../core/words/errors.js';

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

/** The statement was committed here, and its wait for a synchronous standby was cancelled: a failover may lose it. */
export class NotReplicated extends Error {
  constructor() {
    super('the wait for a synchronous standby was cancelled');
  }
}

/** SQLSTATE codes that no repetition changes: https://www.postgresql.org/docs/current/errcodes-appendix.html. */
const HOPELESS = /^(22|28|3D|3F|42|P0001)/;
/** Two transactions conflicted: nothing was done, and the statement may be sent again at once. */
const CONFLICT = /^40(001|P01)$/;
/** Another transaction has locked a row or a table. Nothing was done. */
const LOCKED = '55P03';
/** The connection was ended: the last statement may have been committed before. */
const ENDED = /^(08|57P|XX)/;

/** The SQLSTATE of an error that the server answered. */
function stateOf(error: Error): string | undefined {
  return 'code' in error && 'severity' in error && typeof error.code === 'string' ? error.code : undefined;
}

/** Whether the server answered with an error, and its connection can be used again. */
export function isRefusal(error: Error): boolean {
  const state = stateOf(error);
  return state !== undefined && !ENDED.test(state);
}

/** Whether the statement may be sent again at once. */
export function isConflict(error: unknown): boolean {
  return error instanceof Error && CONFLICT.test(stateOf(error) ?? '');
}

/** Whether a notice says that a commit did not wait for its standbys. Its text is in the server's language. */
export function isLocalOnly(notice: Error): boolean {
  return 'routine' in notice && notice.routine === 'SyncRepWaitForLSN';
}

/**
 * The error of a failed statement. An error that the server answered is a known failure, except one that ended the
 * connection; a timeout or a broken connection leaves it unknown whether the statement was carried out.
 */
export function toLockError(error: unknown, key: string, schema: string): LockError {
  const failure = error instanceof Error ? error : new Error(String(error));
  const notSent = failure instanceof NotSent;
  const source = notSent && failure.cause instanceof Error ? failure.cause : failure;
  const cause = copyOf(source);
  const state = stateOf(source) ?? '';
  const counter = /^FENCE (\d+)$/.exec(source.message)?.[1];
  if (counter) {
    return fenceTooHigh(key, counter, `delete the row of the key from ${schema}.lease`);
  }
  const subject = key === '' ? '' : `Lock "${key}": `;
  if (HOPELESS.test(state)) {
    return new LockConfigurationError(`${subject}PostgreSQL refused: ${cause.message}. ${cureOf(state, schema)}`, key, { cause });
  }
  if (!notSent && !isRefusal(source)) {
    const cure = failure instanceof NotReplicated ? REPLICATE : REACH;
    return new LockStoreError(`${subject}PostgreSQL did not answer: ${cause.message}. ${cure}`, key, { cause, unknown: true });
  }
  const before = notSent ? 'there is no connection: ' : '';
  const after = state === LOCKED ? ` (${WHO_LOCKS})` : '';
  const message = `${subject}PostgreSQL failed: ${before}${cause.message}${after}. The call may be repeated once that is over.`;
  return new LockStoreError(message, key, { cause, unknown: false });
}

/** The error of a command that twice in a row reached the server after its sender had stopped waiting. */
export function tooLate(key: string): LockStoreError {
  return new LockStoreError(
    `Lock "${key}": PostgreSQL was reached too late, and granted nothing. Find out what holds up the network, or raise ttl.`,
    key,
    { unknown: false },
  );
}

const REACH = 'Make sure that it runs and can be reached from here.';

const REPLICATE = 'Make sure that the standby is there.';

const WHO_LOCKS = 'another transaction has locked the row or the table, or its commit waits for a standby';

/**
 * The error without what the server adds to it: the details have values of the statement, which must not reach a log.
 */
function copyOf(error: Error): Error {
  // Where a host has several addresses, Node gives an error for each, and none for all of them.
  const [first] = error instanceof AggregateError ? (error.errors as Error[]) : [];
  const copy = new Error((error.message || first?.message || error.name).replace(/\.$/, ''));
  copy.name = error.name;
  return 'code' in error ? Object.assign(copy, { code: error.code }) : copy;
}

function cureOf(state: string, schema: string): string {
  if (state.startsWith('28') || state.startsWith('3D')) {
    return 'Correct the user, password and database of the pool given to PostgresLockStore.';
  }
  if (state === '42501') {
    return `Grant the user USAGE on the schema "${schema}", and SELECT, INSERT, UPDATE and DELETE on its tables; or CREATE on the database, to make it.`;
  }
  if (state === 'P0001') {
    return 'Let the processes with the later version of nestjs-distributed-lock call ensureSchema().';
  }
  return state.startsWith('22')
    ? 'The database of the locks needs the encoding UTF8.'
    : `Call ensureSchema() of the store, or run what schemaSql() returns, to create the schema "${schema}" in its present version.`;
}
