import type { JoinReply } from '../kit/lock-table.js';
import type { AttemptReply } from '../kit/replies.js';
import type { LATE, Operation, Parameters } from './operation.js';

export type Attempt = AttemptReply | typeof LATE;

/**
 * The parameters of an attempt. `hold`: its id. `place`: where it queues, or null. `polls`: whether its process asks
 * for its turn by itself, because it cannot be notified. The caller's name, for messages, is `by` in PostgreSQL, and
 * `holder` in MySQL.
 */
type AttemptParameters = Parameters<'key' | 'owner' | 'hold' | 'process' | 'ttlMs' | 'place' | 'polls' | 'latest'>;
type JoinParameters = Parameters<'key' | 'owner' | 'fence' | 'hold' | 'process' | 'ttlMs' | 'latest'>;

/**
 * The operations that the databases have in common, by the names of their parameters, and their replies. Each may run
 * twice. All but `FORCE_RELEASE`, which nothing repeats, answer the second time as they did the first time.
 */
export interface LockOperations {
  /**
   * Grants a lock that is free and reserved for no other place, or confirms the grant to a hold that is in the lock;
   * otherwise queues at the place, if there is one.
   */
  readonly ACQUIRE: Operation<AttemptParameters, Attempt>;
  /**
   * Releases the hold `released` of the owner `releasedOwner`, and acquires for the next caller of the same process.
   * `mayOvertake`: whether that caller gets the lock before the processes that queue. `unanswered`: whether a done mark
   * of `released` is left. The release is carried out also where the command arrives late.
   */
  readonly EXCHANGE: Operation<
    AttemptParameters & Parameters<'released' | 'releasedOwner' | 'unanswered' | 'mayOvertake'>,
    { readonly released: boolean; readonly attempt: Attempt }
  >;
  /** Gives up a place in the queue, or the turn it came to, and no later place. */
  readonly LEAVE: Operation<Parameters<'key' | 'place'>>;
  /** Adds a hold to the running lock of an owner at a fence; never creates a lock. */
  readonly JOIN: Operation<JoinParameters, JoinReply>;
  /**
   * Takes a hold of an owner out of its lock; the last one hands the lock over, or frees it. Of one that is
   * `unanswered` a done mark is left: it keeps the first answer, and refuses an acquire of the same hold that arrives
   * late. Replies whether the hold was in.
   */
  readonly RELEASE: Operation<Parameters<'key' | 'hold' | 'owner' | 'unanswered'>, boolean>;
  /** Frees the lock if it is held at that fence, and hands it over. Replies whether it was. */
  readonly FORCE_RELEASE: Operation<Parameters<'key' | 'fence'>, boolean>;
  /**
   * Deletes the rows of locks that have been free and without a queue for `olderMs`, among the next rows after the row
   * `after`. Replies how many rows were removed, and the last row that was looked at; null where there are no more.
   */
  readonly PURGE: Operation<Parameters<'after' | 'olderMs'>, { readonly removed: number; readonly last: string | Buffer | null }>;
  /**
   * Records the number of one of several databases, such as `1 of 2`, unless a number is recorded already or there is
   * only one database. Replies the number that is recorded then, if any. It is kept in a row of the table of locks that
   * belongs to no key, so it needs no rights of its own.
   */
  readonly NUMBERED: Operation<Parameters<'key' | 'number'>, string | undefined>;
}
