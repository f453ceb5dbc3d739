import type { Shares } from '../../core/words/call-options.js';
import type { Cycle, CycleCall } from '../../core/words/cycle-call.js';
import type { LockErrorCode, LostReason } from '../../core/words/errors.js';
import type { ForcedBy, RefusedReason } from '../../core/words/lock-event.js';
import type { HealthReason, HealthStatus, LockHealth, MemberHealth } from '../../core/words/lock-health.js';

/** A word that another process says: one of those that are known here, or one of a later version. */
export type Word<Known extends string> = Known | (string & Record<never, never>);

/** The health of a store, as a process tells it. */
export interface PeerHealth extends Omit<LockHealth, 'status' | 'reasons' | 'members' | 'refuses'> {
  readonly status: Word<HealthStatus>;
  readonly reasons: readonly Word<HealthReason>[];
  readonly members?: readonly PeerMember[] | undefined;
  readonly refuses?: Word<NonNullable<LockHealth['refuses']>> | undefined;
}

/** One of its servers, as a process says. */
export interface PeerMember extends Omit<MemberHealth, 'refuses'> {
  readonly refuses?: Word<NonNullable<MemberHealth['refuses']>> | undefined;
}

/** A lock by its key, and the grant that it is held by. */
export interface HeldAt {
  readonly key: string;
  /** The fence as `inspect` and `forceRelease` know it. */
  readonly fence: number;
}

/** A call, as the process says in which it runs. */
export interface PeerCall {
  readonly key: string;
  /** The name that the call is counted under: `LockEvent.name`. */
  readonly name: string;
  /** The place of the call in the code: `LockEvent.site`. */
  readonly site: string;
  /** The text of the option `describe` for the call. */
  readonly description?: string | undefined;
  /** The process, as the store calls it: `LockProcess.id`. */
  readonly process: string;
}

/** A lock that a process holds. */
export interface HeldLock extends PeerCall, HeldAt {
  /** The fence of the call that runs in the lock now: the fence of the grant, or a fence that the grant reserved. */
  readonly callFence: number;
  /** For how long that call has had it, in milliseconds. */
  readonly heldMs: number;
  /** The rest of the lease, in milliseconds; undefined where leases do not end by time. */
  readonly remainingMs: number | undefined;
  /** With whom the call shares the key; undefined in write mode. A process of a later version may have another word. */
  readonly shares?: Shares | undefined;
}

/** A call that waits for a lock. */
export interface WaitingCall extends PeerCall {
  /** Names the wait: one for each lock that a call waits for. */
  readonly id: string;
  readonly waitedMs: number;
  /** The rest of its `wait`, in milliseconds. */
  readonly leftMs: number;
  /** With whom it would share the key, as in `HeldLock`. */
  readonly shares?: Shares | undefined;
  /** The locks that it holds meanwhile: its own, and those of the calls around it. */
  readonly holds: readonly HeldAt[];
}

/** A call that has ended: it released its lock, lost it, or did not get it. Not one that skipped a busy lock. */
export interface EndedCall extends PeerCall {
  /** Names the call, so that a call that is told twice is known. */
  readonly id: string;
  /** The fence of the call; undefined where it did not get the lock. */
  readonly fence: number | undefined;
  readonly waitedMs: number;
  readonly heldMs: number;
  /** How long ago it ended, in milliseconds. */
  readonly agoMs: number;
  readonly outcome: Word<'released' | 'lost' | 'refused'>;
  /** Why it was lost or refused. */
  readonly reason: Word<LostReason | RefusedReason> | undefined;
  /**
   * For how long other calls of its process had had the grant before it, in milliseconds; `fence` is the time of the
   * grant.
   */
  readonly servedMs?: number | undefined;
  /** For how long its code ran on after the loss, in milliseconds, where that has ended since. */
  readonly ranOnMs?: number | undefined;
  /** The `id` under which it was told before its code had ended. */
  readonly instead?: string | undefined;
}

/**
 * The type of an incident: the type of the `LockEvent` that told it.
 *
 * | type | meaning |
 * |---|---|
 * | `lost` | a lease ended before its code did |
 * | `forced` | somebody released a lock by force, in this process |
 * | `cycle` | a call gave way, since calls waited for each other |
 * | `refused` | calls gave up waiting (`busy`), or were refused; not calls that were aborted, or skipped a busy lock |
 * | `releaseFailed` | the store did not answer a release |
 * | `storeUnavailable`, `storeAnswered` | an outage of the store, and its end |
 */
export type IncidentType = 'lost' | 'forced' | 'cycle' | 'refused' | 'releaseFailed' | 'storeUnavailable' | 'storeAnswered';

/** An incident of a call or a store within the last 24 hours, as told by the process in which it happened. */
export interface LockIncident {
  /** Names the incident, so that an incident that is told twice is known. */
  readonly id: string;
  readonly type: Word<IncidentType>;
  /** When it happened, by the clock of the process that asks; of several refusals, the last. */
  readonly at: Date;
  /** Empty for an outage. */
  readonly key: string;
  /** The name that the call is counted under: `LockEvent.name`. */
  readonly name: string;
  /** Where the call stands in the code: `LockEvent.site`. */
  readonly site: string;
  /** The text of the option `describe` for the call. */
  readonly description?: string | undefined;
  /** The process in which it happened: `LockProcess.id`. */
  readonly process: string;
  /**
   * How often it happened. Refusals of one name for one reason, and outages for one reason, that follow each other
   * within a minute are one incident, with the time of the last.
   */
  readonly count: number;
  /** The fence of the call. */
  readonly fence?: number | undefined;
  /** Why the lock was lost or the call refused, or the code of the error. */
  readonly reason?: Word<LostReason | RefusedReason | LockErrorCode> | undefined;
  /**
   * For how long the lock had been held, the call had waited (of several, the longest) or the store had been away, in
   * milliseconds.
   */
  readonly lastedMs?: number | undefined;
  /** The text of the error of an outage, or of a release that failed. */
  readonly error?: string | undefined;
  /** Who held the lock meanwhile. */
  readonly holder?: string | undefined;
  /** Who released the lock by force, where that was told. */
  readonly forcedBy?: ForcedBy | undefined;
  /** Whether the calls of a cycle were of one process or of several. */
  readonly scope?: Word<Cycle['scope']> | undefined;
  /** The calls of a cycle; the one of `site` and `key` gave way. */
  readonly calls?: readonly CycleCall[] | undefined;
}

/** An incident as a process tells it. */
export interface FoundIncident extends Omit<LockIncident, 'at'> {
  readonly agoMs: number;
}

/** A process that uses the store, or one of several applications in it. */
export interface LockProcess {
  /** The name of the process in the store, and after a `#` the name of the application in it. */
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  /** The version of this library there. */
  readonly version: string;
  /** For how long it has used the store, in milliseconds. */
  readonly upMs: number;
  /** How many locks it holds, and how many of its calls wait. */
  readonly held: number;
  readonly waiting: number;
  /** The health of the store as the process sees it; undefined where it was not asked for. */
  readonly health: PeerHealth | undefined;
}

/** The answers of all processes of a store, as it was when they were asked. */
export interface Survey {
  /** The name under which the store is registered here. */
  readonly store: string;
  readonly processes: readonly LockProcess[];
  readonly held: readonly HeldLock[];
  readonly waiting: readonly WaitingCall[];
  /** Ended calls of processes that record them. */
  readonly ended: readonly EndedCall[];
  /** The incidents of late. */
  readonly incidents: readonly FoundIncident[];
  /**
   * How many locks and calls were left out: a process lists 1,000 at most, and the answers of all have 32 million
   * characters at most.
   */
  readonly leftOut: number;
  /**
   * Processes that hold or wait, as others have seen, and have not answered: stopped, cut off, or of an older version.
   */
  readonly silent: readonly string[];
}
