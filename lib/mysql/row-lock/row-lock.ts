import { randomBytes } from 'node:crypto';
import type { Duration } from '../../core/words/duration.js';
import { checkRowLock, misused, type FailedRowLock } from '../../sql/row-lock.js';
import { STALE, toEndError, toRowLockError } from './row-lock-errors.js';
import { RowLockSession, type RowLockClient } from './row-lock-session.js';
import { CURRENT_TURN, CURRENT_TURN_NOWAIT, LOCK, SEEN_TURN, TAKE_TURN } from './row-lock-table.js';

/** The options of `withRowLock`. */
export interface RowLockOptions {
  /**
   * How long the call waits before it gives up with `LockNotAcquiredError`, in whole seconds, rounded up; 0: not at
   * all. Default: `'5s'`.
   */
  wait?: Duration | undefined;
}

/**
 * Runs `body` while this transaction alone holds the key, or all of the keys: rows that are locked until the
 * *transaction* ends, which is later than `body`. What the body returns or throws passes unchanged.
 *
 * Choose it where everything that the lock protects lives in this one database and is written in this transaction. Then
 * no lease can end early and no fence is needed: the commit itself releases the lock, and the next holder sees what was
 * written. For anything else, such as a call to another service, use `LockService`.
 *
 * A call inside a call with the same key, in the same transaction, continues at once. Two calls at the same time on one
 * connection are wrong: await the first.
 *
 * Throws `LockNotAcquiredError` when busy for `wait`: the transaction is still open then, and should be rolled back;
 * also when transactions wait for each other: the server has rolled it back then. Throws `LockConfigurationError`
 * outside of a transaction; where the transaction has read before the lock what another holder has changed since
 * (REPEATABLE READ keeps that snapshot); and after a body that ended the transaction. Throws `LockKeyError`; and
 * `LockStoreError` when the database fails.
 */
export async function withRowLock<T>(
  client: RowLockClient,
  key: string | readonly string[],
  body: () => T | PromiseLike<T>,
  options: RowLockOptions = {},
): Promise<T> {
  const { keys, waitMs } = checkRowLock(client, key, body, options, { wait: true }, 'connection');
  const session = new RowLockSession(client);
  const savepoint = `distributed_lock_${randomBytes(8).toString('hex')}`;
  const startedAt = performance.now();
  const failed = (): FailedRowLock => ({ keys, waitMs, waitedMs: performance.now() - startedAt });

  let isCurrent: boolean;
  try {
    isCurrent = await lockRows(session, keys, waitMs, savepoint);
  } catch (error) {
    throw toRowLockError(error, failed());
  }
  if (!isCurrent) {
    throw misused(keys, STALE);
  }
  const result = await body();
  try {
    // The savepoint is gone if the transaction is.
    await session.value(`RELEASE SAVEPOINT ${savepoint}`);
  } catch (error) {
    throw toEndError(error, failed());
  }
  return result;
}

/** Locks the rows in their order; answers whether the transaction sees the last holders' writes of all rows. */
async function lockRows(session: RowLockSession, keys: readonly string[], waitMs: number, savepoint: string): Promise<boolean> {
  // Outside of a transaction the first statement does nothing, and the second fails. No expression of both servers
  // shows whether there is a transaction.
  await session.value(`SAVEPOINT ${savepoint}`);
  await session.value(`ROLLBACK TO SAVEPOINT ${savepoint}`);
  // The driver writes bytes as a literal that needs no escapes, whichever sql_mode is set.
  const names = keys.map((key) => Buffer.from(key));
  const turn = randomBytes(8);
  const current = await session.keepingLockWait(() => lockInOrder(session, names, turn, waitMs));
  for (const [at, name] of names.entries()) {
    if ((await session.value(SEEN_TURN, [name])) !== current[at]) {
      return false;
    }
  }
  // After all of the reads: a transaction sees its own writes, whatever its snapshot is.
  for (const name of names) {
    await session.value(TAKE_TURN, [turn, name]);
  }
  return true;
}

/** Locks the rows one by one; answers the turns that the last holders left. */
async function lockInOrder(session: RowLockSession, names: readonly Buffer[], turn: Buffer, waitMs: number) {
  const deadline = performance.now() + waitMs;
  const turns: (string | undefined)[] = [];
  for (const name of names) {
    const leftMs = deadline - performance.now();
    let current = leftMs > 0 ? undefined : await session.value(CURRENT_TURN_NOWAIT, [name]);
    if (current === undefined) {
      await session.limitWait(Math.max(1, Math.ceil(leftMs / 1_000)));
      await session.value(LOCK, [name, turn]);
      current = await session.value(CURRENT_TURN, [name]);
    }
    turns.push(current);
  }
  return turns;
}
