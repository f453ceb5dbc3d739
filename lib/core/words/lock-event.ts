import { channel } from 'node:diagnostics_channel';
import type { HoldMode } from './call-options.js';
import type { Cycle } from './cycle-call.js';
import {
  LockNotAcquiredError,
  type LockError,
  type LockHolder,
  type LockLostError,
  type LostReason,
  type NotAcquiredReason,
} from './errors.js';

/** The name of the `node:diagnostics_channel` that every lock event is published on. */
export const LOCK_CHANNEL = 'nestjs-distributed-lock';

/** The fields of every event. No event contains an owner or a ticket. */
export interface EventOfLock {
  /** The name under which the store is registered: `'default'`, or its own. */
  readonly store: string;
  /** Empty where a health check found that the store does not answer, or answers again. */
  readonly key: string;
  /**
   * The name to count the event under: the key template, `Class.method` where the key is a function, or the option
   * `name` of a call of `LockService`. There are few names, where there may be any number of keys.
   */
  readonly name: string;
  /** Host, process id and, where they are known, `Class.method` and the description of the call. */
  readonly by: string;
  /** The process that publishes the event: its host and its process id. */
  readonly process: string;
  /** Where the call stands in the code: `Class.method`, its option `by`, or the method of `LockService`. */
  readonly site: string;
  /** How the call has its key, or wants it. Undefined of a release by force, and of a health check. */
  readonly mode?: HoldMode | undefined;
  /** The text of the option `describe` for the call, such as `request=8f3 tenant=acme`. */
  readonly description?: string | undefined;
}

/**
 * Why a call has not got its locks: the reason of its `LockNotAcquiredError`; `store`: a `LockStoreError`; `lost`: a
 * `LockLostError`, such as the error of a ticket; `configuration`: a `LockConfigurationError`.
 */
export type RefusedReason = NotAcquiredReason | 'store' | 'lost' | 'configuration';

const REASONS: ReadonlyMap<LockError['code'] | undefined, RefusedReason> = new Map<LockError['code'], RefusedReason>([
  ['LOCK_STORE', 'store'],
  ['LOCK_LOST', 'lost'],
  ['LOCK_CONFIGURATION', 'configuration'],
]);

/** The reason of a call's error; undefined for an error that is none of a lock. */
export function refusedReasonOf(refusal: unknown): RefusedReason | undefined {
  return refusal instanceof LockNotAcquiredError ? refusal.reason : REASONS.get((refusal as Partial<LockError> | undefined)?.code);
}

/** Who released a lock by force, as they said; the process says from where. */
export interface ForcedBy {
  readonly by?: string | undefined;
  readonly reason?: string | undefined;
  /** The process that released it: its host and its process id. */
  readonly process: string;
}

/**
 * An event of a lock, as published on the channel `'nestjs-distributed-lock'`.
 *
 * | type | when |
 * |---|---|
 * | `acquired` | the store granted the lock; not for re-entries; `contended` says whether the call had to wait |
 * | `waited` | a call that had to wait has its locks, or gave up: `gaveUp` says why; `holder` was seen last |
 * | `refused` | a call did not get its locks, with or without a wait; `reason` says why, `holder` who has the lock |
 * | `cycle` | a call was refused: calls of this process (`scope`) or of several wait for each other for `keys` |
 * | `renewed` | the store renewed the lease; `margin` is the part of it that was left, from 1 down to 0 |
 * | `released` | the last hold of this process has left |
 * | `lost` | the lease ended before the code did |
 * | `endedLate` | the code of a lost lock has ended, after its call had rejected; `thrown` is its error |
 * | `forced` | this process released the lock by force; `forcedBy` has the name and the reason that were given |
 * | `heldLong` | a section of `by` has lasted ten times `ttlMs`, and others wait; once for each key |
 * | `unreleased` | a handle of `acquire()` was garbage collected, and its lock was not released |
 * | `releaseFailed` | the store did not answer a release; the lease runs out by itself |
 * | `ranWithout` | the body of a semaphore runs without a permit, since the store is away: `onUnavailable: 'run'` |
 * | `countsDiffer` | a permit was refused or waits, and the named holder asked for another count; said once |
 * | `storeUnavailable` | the store failed for the first time since it last answered, or for a new reason |
 * | `storeAnswered` | the store answered again, after `awayMs` |
 * | `leader` | a candidate of `lead()` stands by, leads, or leads no more: its `change` |
 *
 * `skipped` says that the caller goes on without a busy lock: `onBusy: 'skip'`, or `tryAcquire`. It is no failure.
 *
 * `inside` says that the call waited for another one inside the same lock.
 *
 * `error` of `lost` says why. `kept` says that the code had ended, and the transaction around it had not: no call was
 * left to reject.
 *
 * `untold` of `storeUnavailable` is the number of outages that the log left out: it has one line a minute for each
 * reason.
 *
 * `permits` of `countsDiffer` is the count of the call, and `holderPermits` that of `holder`.
 *
 * `ttlMs` of `heldLong` is the `ttl` of the holder, or of the waiting call where another process is the holder.
 */
export type LockEvent =
  | (EventOfLock & { readonly type: 'acquired'; readonly fence: number; readonly waitedMs: number; readonly contended: boolean })
  | (EventOfLock & {
      readonly type: 'waited';
      readonly waitedMs: number;
      readonly inside: boolean;
      readonly gaveUp: RefusedReason | undefined;
      readonly skipped: boolean;
      readonly holder: LockHolder | undefined;
    })
  | (EventOfLock & {
      readonly type: 'refused';
      readonly waitedMs: number;
      readonly inside: boolean;
      readonly reason: RefusedReason;
      readonly skipped: boolean;
      readonly holder: LockHolder | undefined;
    })
  | (EventOfLock & { readonly type: 'cycle'; readonly keys: readonly string[] } & Cycle)
  | (EventOfLock & { readonly type: 'renewed'; readonly fence: number; readonly margin: number })
  | (EventOfLock & { readonly type: 'released'; readonly fence: number; readonly heldMs: number })
  | (EventOfLock & {
      readonly type: 'lost';
      readonly fence: number;
      readonly heldMs: number;
      readonly reason: LostReason;
      readonly error: LockLostError;
      readonly kept: boolean;
    })
  | (EventOfLock & { readonly type: 'endedLate'; readonly fence: number; readonly heldMs: number; readonly thrown: unknown })
  | (EventOfLock & { readonly type: 'forced'; readonly fence: number; readonly forcedBy: ForcedBy })
  | (EventOfLock & { readonly type: 'heldLong'; readonly heldMs: number; readonly ttlMs: number })
  | (EventOfLock & { readonly type: 'unreleased'; readonly fence: number; readonly heldMs: number })
  | (EventOfLock & { readonly type: 'releaseFailed'; readonly fence: number; readonly error: LockError })
  | (EventOfLock & { readonly type: 'ranWithout'; readonly error: LockError })
  | (EventOfLock & {
      readonly type: 'countsDiffer';
      readonly permits: number;
      readonly holder: LockHolder;
      readonly holderPermits: number;
    })
  | (EventOfLock & { readonly type: 'storeUnavailable'; readonly error: LockError; readonly untold?: number })
  | (EventOfLock & { readonly type: 'storeAnswered'; readonly awayMs: number })
  | (EventOfLock & { readonly type: 'leader' } & LeaderChange);

/** Every event is published on it; Node keeps a listener's error away from the lock. */
export const lockChannel = channel(LOCK_CHANNEL);

/**
 * A change of a candidate of `lead()` or `@Leader`.
 *
 * | change | when |
 * |---|---|
 * | `standby` | it waits to lead, for the first time or again |
 * | `elected` | it leads from now on, and its code begins |
 * | `revoked` | its code was notified to stop: the lease was lost, or the candidacy ends (`released`, `shutdown`) |
 * | `stillRuns` | its code did not stop in time, and runs on without the lock; it stands by again once it has ended |
 * | `ended` | it leads no more, and its code has ended; `reason`: as in `revoked`, or how the code ended by itself |
 * | `failed` | it could not stand by, and tries again after a pause |
 *
 * `ledMs` counts from `elected`. `thrown` is the error that the code threw.
 */
export type LeaderChange =
  | { readonly change: 'standby' }
  | { readonly change: 'elected'; readonly fence: number; readonly waitedMs: number }
  | { readonly change: 'revoked' | 'stillRuns'; readonly fence: number; readonly ledMs: number; readonly reason: LostReason }
  | {
      readonly change: 'ended';
      readonly fence: number;
      readonly ledMs: number;
      readonly reason: LostReason | 'returned' | 'threw';
      readonly thrown: unknown;
    }
  | { readonly change: 'failed'; readonly error: LockError };

/** Events that an operator should see, also without a listener on the channel. */
export type LockTrouble = Exclude<LockEvent, { type: 'acquired' | 'waited' | 'refused' | 'cycle' | 'renewed' | 'released' | 'ranWithout' }>;
