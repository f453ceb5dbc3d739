import { checkOptions } from '../../core/words/check-options.js';
import { parseDuration, type Duration } from '../../core/words/duration.js';
import { LockConfigurationError } from '../../core/words/errors.js';
import { checkLiteralKeys } from '../../core/words/lock-key.js';
import { NOT_IN_TRANSACTION, toRowLockError } from './row-lock-errors.js';
import { storedText } from './postgres-keys.js';
import { checkSchema, qualified } from './schema-name.js';

/**
 * A client inside a transaction: one of `pg` after `BEGIN`, the `EntityManager` of a TypeORM transaction, or an object
 * with a `query` that hands the statement to what another library calls its transaction.
 */
export interface RowLockClient {
  query(text: string, values: unknown[]): PromiseLike<unknown>;
  /** The state of the transaction, which a client of `pg` knows; asked after the statement, where the client has it. */
  getTransactionStatus?(): string | null;
}

/** The options of `withRowLock`. */
export interface RowLockOptions {
  /** The schema of the table. Default: `'distributed_lock'`. */
  schema?: string | undefined;
  /** How long the call waits before it gives up with `LockNotAcquiredError`; 0: not at all. Default: `'5s'`. */
  wait?: Duration | undefined;
}

const PLACE = 'withRowLock';

/**
 * Runs `body` while this transaction alone holds the key, or all of the keys: rows that are locked `FOR UPDATE` until
 * the *transaction* ends, which is later than `body`. What the body returns or throws passes unchanged.
 *
 * Choose it where everything that the lock protects lives in this one database and is written in this transaction. Then
 * no lease can end early and no fence is needed: the commit itself releases the lock, and the next holder sees what was
 * written. For anything else, such as a call to another service, use `LockService`: a transaction that waits for
 * another system keeps a connection, and holds up VACUUM.
 *
 * A call inside a call with the same key, in the same transaction, continues at once. A rollback to a savepoint
 * releases what was locked after it. Keys have nothing to do with those of `PostgresLockStore`. One statement for a
 * client of `pg`, two for others.
 *
 * Throws `LockNotAcquiredError` when busy for `wait` or when transactions wait for each other: the transaction is then
 * aborted, and has to be rolled back. `wait` is PostgreSQL's `lock_timeout`, for this call only; the queue of a row can
 * use it twice. Throws `LockConfigurationError` outside of a transaction, and for an isolation level other than READ
 * COMMITTED, where the body would read what was there before the lock; `LockKeyError`; and `LockStoreError` when the
 * database fails.
 */
export async function withRowLock<T>(
  client: RowLockClient,
  key: string | readonly string[],
  body: () => T | PromiseLike<T>,
  options: RowLockOptions = {},
): Promise<T> {
  if (typeof (client as RowLockClient | undefined)?.query !== 'function') {
    throw new LockConfigurationError(`${PLACE}: the client has no query(text, values). Pass the client on which BEGIN was called.`);
  }
  if (typeof body !== 'function') {
    throw new LockConfigurationError(`${PLACE}: there is no function to run inside the lock. Pass it after the key.`);
  }
  checkOptions(PLACE, options, { schema: true, wait: true });
  const { schema, wait = '5s' } = options;
  const keys = checkLiteralKeys(key, PLACE);
  await lockRows(client, keys, checkSchema(schema, PLACE), parseDuration(wait, 'wait', 0, PLACE));
  return body();
}

async function lockRows(client: RowLockClient, keys: readonly string[], schema: string, waitMs: number): Promise<void> {
  const startedAt = performance.now();
  try {
    const knows = typeof client.getTransactionStatus === 'function' && client.getTransactionStatus() !== null;
    if (!knows) {
      // The server refuses this statement outside of a transaction; no SQL expression shows whether there is one.
      await client.query(qualified('LOCK TABLE SCHEMA.row_lock IN ROW EXCLUSIVE MODE', schema), []);
    }
    const rows = keys.map(storedText);
    await client.query(qualified('SELECT SCHEMA.lock_rows($1::text[], $2::integer)', schema), [rows, Math.ceil(waitMs)]);
    if (!knows || client.getTransactionStatus?.() === 'T') {
      return;
    }
  } catch (error) {
    throw toRowLockError(error, { keys, schema, waitMs, waitedMs: performance.now() - startedAt });
  }
  throw new LockConfigurationError(`Row lock "${keys.join(', ')}": ${NOT_IN_TRANSACTION}`, keys.join(', '));
}
