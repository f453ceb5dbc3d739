import type { Duration } from '../../core/words/duration.js';
import { checkRowLock, misused, PLACE } from '../../sql/row-lock.js';
import { storedText } from '../postgres-keys.js';
import { checkSchema, qualified } from '../schema-name.js';
import { NOT_IN_TRANSACTION, toRowLockError } from './row-lock-errors.js';

/**
 * A client inside a transaction: a client of `pg` after `BEGIN`, the `EntityManager` of a TypeORM transaction, or an
 * object with a `query` that hands the statement to the transaction object of another library.
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
  const { keys, waitMs } = checkRowLock(client, key, body, options, { schema: true, wait: true }, 'client');
  await lockRows(client, keys, checkSchema(options.schema, PLACE), waitMs);
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
    throw toRowLockError(error, { keys, waitMs, waitedMs: performance.now() - startedAt }, schema);
  }
  throw misused(keys, NOT_IN_TRANSACTION);
}
