import type { LockError } from '../../core/words/errors.js';
import { field, rowLockError, type Diagnosis, type FailedRowLock } from '../../sql/row-lock.js';
import { WRONG_ISOLATION } from './row-lock-table.js';

const ABORTED = 'The transaction is aborted: roll it back';

export const NOT_IN_TRANSACTION =
  'the client is not inside a transaction, so that the lock would end at once. Pass the client on which BEGIN was called, not a pool.';

const MISSING = (schema: string): string =>
  `the table of row locks is missing in the schema "${schema}". Call ensureSchema() of PostgresLockStore, or run what rowLockSql() returns.`;

/** The mistakes in the use of the function, and how to mend them, by the SQLSTATE of the database's error. */
const MISUSE: Readonly<Record<string, (schema: string) => string>> = {
  '25P01': () => NOT_IN_TRANSACTION,
  [WRONG_ISOLATION]: () =>
    'the transaction would not see what the last holder wrote, because it reads a snapshot that is older than the lock. ' +
    'Use READ COMMITTED; serializable transactions find conflicts by themselves.',
  '25006': () => 'the transaction is read-only. Use one that may write, on the primary server.',
  '42501': (schema) =>
    `the user lacks a right. Grant USAGE on the schema "${schema}", and SELECT, INSERT and UPDATE on its table row_lock.`,
  '3F000': MISSING,
  '42P01': MISSING,
  '42883': MISSING,
};

/** Why a lock was not acquired, by the SQLSTATE. */
const REFUSALS: Readonly<Record<string, Diagnosis['refusal']>> = {
  '55P03': { reason: 'busy', advice: `${ABORTED}, and raise wait or shorten the others.` },
  '40P01': {
    reason: 'cycle',
    advice: `${ABORTED} and repeat it; it does not happen again where all keys are locked at once with a list.`,
  },
};

/** The error of an attempt; `error` is the error of the client, whichever driver or ORM it belongs to. */
export function toRowLockError(error: unknown, failed: FailedRowLock, schema: string): LockError {
  const { cause, state } = plainCause(error);
  const diagnosis = { cause, misuse: MISUSE[state]?.(schema), refusal: REFUSALS[state], isKnown: state !== '' };
  return rowLockError(failed, diagnosis, 'PostgreSQL');
}

/** The codes of PostgreSQL's errors; Node's are such as EPIPE. */
const SQLSTATE = /^(?=.*\d)[0-9A-Z]{5}$/;

/**
 * A copy of the database's error without the statement and the values that drivers and ORMs add; and its SQLSTATE, ''
 * where it is not an error of the database. Drizzle keeps it as the cause, Prisma in `meta`, beside a code of its own,
 * and a driver adapter of Prisma deeper in there, where its code and message are called original.
 */
function plainCause(error: unknown): { cause: Error; state: string } {
  const places = [field(field(field(error, 'meta'), 'driverAdapterError'), 'cause'), field(error, 'meta'), field(error, 'cause')];
  const found = places.find((one) => SQLSTATE.test(String(codeOf(one)))) ?? error;
  const cause = new Error(String(field(found, 'originalMessage') ?? field(found, 'message') ?? found));
  const code = codeOf(found);
  if (typeof code !== 'string') {
    return { cause, state: '' };
  }
  return { cause: Object.assign(cause, { code }), state: SQLSTATE.test(code) ? code : '' };
}

function codeOf(error: unknown): unknown {
  return field(error, 'originalCode') ?? field(error, 'code');
}
