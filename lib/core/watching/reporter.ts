import { debugLine, type DebugNote } from './debug-line.js';
import type { Acquisition } from '../entering/acquisition.js';
import type { EntryEvents } from '../entering/entering-parts.js';
import { modeOf } from '../words/call-options.js';
import { keysOf } from '../words/cycle-call.js';
import { callerOf, THIS_PROCESS, type Caller } from '../words/caller.js';
import { LockNotAcquiredError, refusalOfStore, type LockError, type LockLostError } from '../words/errors.js';
import type { Lease } from '../leases/lease.js';
import type { Entrant, LeaseEvents } from '../leases/lease-events.js';
import {
  lockChannel,
  refusedReasonOf,
  type EventOfLock,
  type ForcedBy,
  type LeaderChange,
  type LockEvent,
  type LockTrouble,
} from '../words/lock-event.js';
import type { Busy } from '../seam/lock-store.js';
import type { Outages } from './outages.js';
import { OncePerKey } from '../words/once-per-key.js';
import type { LockEntry } from '../words/lock-telemetry.js';
import type { Telemetry } from './telemetry.js';

type LostEvent = Extract<LockEvent, { type: 'lost' }>;

const FORCING = callerOf('', 'LockOperations.forceRelease');

/** The lock and the caller that an event is about, and how the caller wants the lock, where it does. */
type Subject = Pick<Lease, 'key' | 'caller'> & Partial<Pick<Lease, 'shares'>>;

/** A check of the health is about no key. */
const CHECKING: Subject = { key: '', caller: callerOf('', 'LockOperations.health') };

/** How many times a ttl a section may last while others wait, until that is worth a warning. */
const LONG = 10;

/** Keeps calls that have ended, for surveys. */
interface CallRecorder {
  record(event: LockEvent, lease: Lease | undefined): void;
  codeEnded(lease: Lease): void;
}

interface ReporterParts {
  /** The name under which the store is registered. */
  readonly store: string;
  readonly onTrouble: (trouble: LockTrouble) => void;
  readonly outages: Outages;
  readonly telemetry?: Telemetry | undefined;
  /** Keeps incidents, whoever else reads events. */
  readonly incidents: { record(event: LockEvent): void };
  /** Writes a line of the debug log; undefined where that is off. */
  readonly debug?: ((line: string) => void) | undefined;
}

/** Reports the events of the locks of one store. Nothing that it calls can stop a release. */
export class Reporter implements LeaseEvents, EntryEvents {
  /**
   * The parts that want to learn of successes: telemetry, the debug log and the recorder of calls. During an outage
   * also `outages`, since an answer ends it. Where this list is empty and `lockChannel` has no subscribers, successes
   * need not be reported.
   */
  readonly watchers: readonly unknown[];
  readonly #parts: ReporterParts;
  readonly #watchers: unknown[];
  readonly #long = new OncePerKey();
  readonly #differing = new OncePerKey();
  #recorder: CallRecorder | undefined;

  constructor(parts: ReporterParts) {
    this.#parts = parts;
    this.#watchers = [parts.telemetry, parts.debug].filter((watcher) => watcher !== undefined);
    this.watchers = this.#watchers;
  }

  /** Has events recorded from now on. */
  recordsBy(recorder: CallRecorder): void {
    this.#recorder = recorder;
    this.#watchers.push(recorder);
  }

  /** A call has the lock: the store granted it, or the lease of the call before serves this call. */
  acquired(lease: Lease, entrant: Entrant): void {
    if (!lease.isReused) {
      this.#answered(lease, true);
    }
    const { waitedMs, hasWaited } = entrant;
    this.#publish({ type: 'acquired', ...this.#ofLease(lease), waitedMs, contended: hasWaited }, lease);
    this.#entered(lease, lease.isJoined ? 'joined' : 'acquired');
  }

  /** The store answered that another owner holds the lock; `waits` says whether the call may wait for it. */
  busy(lease: Lease, { holder, permits, remainingMs }: Busy, waits: boolean): void {
    this.#answered(lease, true);
    const { shares } = lease;
    // Once for each name of a call and pair of counts: there may be any number of keys.
    if (typeof shares === 'number' && permits && permits !== shares) {
      const counts = [shares, permits].toSorted((one, other) => one - other);
      if (this.#differing.isNew(`${counts.join(' ')} ${lease.caller.name}`)) {
        this.#trouble({ type: 'countsDiffer', ...this.#subject(lease), permits: shares, holder, holderPermits: permits });
      }
    }
    if (this.#parts.debug) {
      this.#log({ type: 'busy', ...this.#subject(lease), heldBy: holder.by, heldMs: holder.heldMs, remainingMs });
    }
    if (waits) {
      this.stillHeld(lease, holder.by, holder.heldMs);
    }
  }

  /** A call begins to wait for another call of this process. */
  queued(lease: Lease, behind: number): void {
    if (this.#parts.debug) {
      this.#log({ type: 'queued', ...this.#subject(lease), behind });
    }
  }

  reentered({ key, fence, shares }: Lease, caller: Caller): void {
    if (this.#parts.debug) {
      this.#log({ type: 'reentered', ...this.#subject({ key, caller, shares }), fence });
    }
    this.#entered({ key, fence, caller, shares }, 'reentered');
  }

  /** A call has its locks, or `refusal` says why not. */
  ended(acquisition: Acquisition, refusal: unknown): void {
    const { waitedFor, waitedInside: inside } = acquisition;
    const failure = refusal === undefined ? undefined : refusalOfStore(refusal);
    if (failure) {
      this.#failed({ ...acquisition.call, key: failure.key }, failure, true);
    }
    if (refusal === undefined && waitedFor === undefined) {
      return;
    }
    const { call, frame, waitedMs, cycle } = acquisition;
    const reason = refusedReasonOf(refusal);
    const holder = (refusal instanceof LockNotAcquiredError ? refusal.holder : undefined) ?? acquisition.holder;
    const skipped = call.skips && reason === 'busy';
    if (waitedFor !== undefined) {
      const subject = this.#subject({ ...call, key: waitedFor });
      this.#publish({ type: 'waited', ...subject, waitedMs, inside, gaveUp: reason, skipped, holder });
    }
    if (reason) {
      const subject = this.#subject({ ...call, key: (refusal as LockError).key ?? (frame.keys[0] as string) });
      this.#publish({ type: 'refused', ...subject, waitedMs, inside, reason, skipped, holder });
      if (reason === 'cycle' && cycle) {
        this.#publish({ type: 'cycle', ...subject, keys: keysOf(cycle), ...cycle });
      }
    }
  }

  /**
   * Other calls wait for a lock that `by` has held for `heldMs`. Reported once for each key. `lease` belongs to the
   * holder, or to the call that waits where another process is the holder.
   */
  stillHeld(lease: Lease, by: string, heldMs: number): void {
    const { key, ttlMs, caller } = lease;
    // A lock that is only reserved names no holder. Who leads does so for long.
    if (!caller.leads && heldMs > LONG * ttlMs && by !== '' && this.#long.isNew(key)) {
      this.#trouble({ type: 'heldLong', ...this.#subject(lease), by, heldMs, ttlMs });
    }
  }

  released(lease: Lease): void {
    this.#publish({ type: 'released', ...this.#heldLease(lease) }, lease);
  }

  /** `kept` says that its code had ended, and a transaction kept the lock. */
  lost(lease: Lease, error: LockLostError, kept: boolean): void {
    this.#trouble({ type: 'lost', ...this.#heldLease(lease), reason: error.reason, error, kept }, lease);
  }

  endedLate(lease: Lease, thrown: unknown): void {
    this.#trouble({ type: 'endedLate', ...this.#heldLease(lease), thrown });
  }

  codeEnded(lease: Lease): void {
    this.#recorder?.codeEnded(lease);
  }

  unreleased(lease: Lease): void {
    this.#trouble({ type: 'unreleased', ...this.#heldLease(lease) });
  }

  releaseFailed(lease: Lease, error: LockError): void {
    this.#trouble({ type: 'releaseFailed', ...this.#ofLease(lease), error }, lease);
  }

  attemptFailed(lease: Lease, error: LockError): void {
    this.#failed(lease, error, true);
  }

  renewalFailed(lease: Lease, error: LockError): void {
    this.#failed(lease, error, false);
  }

  renewalAnswered(lease: Lease): void {
    this.#answered(lease, false);
  }

  /** A check of the health got no answer, or an attempt that was made to try the store no grant. */
  checkFailed(error: LockError, isAttempt = false): void {
    this.#failed(CHECKING, error, isAttempt);
  }

  /** The store answered a check of the health, or an attempt that was made to try it. */
  checkAnswered(isAttempt = false): void {
    this.#answered(CHECKING, isAttempt);
  }

  renewed(lease: Lease, margin: number): void {
    if (this.#watchers.length > 0 || lockChannel.hasSubscribers) {
      this.#publish({ type: 'renewed', ...this.#ofLease(lease), margin });
    }
  }

  /** A call that wanted a permit runs without one. */
  ranWithout(subject: Subject, error: LockError): void {
    this.#publish({ type: 'ranWithout', ...this.#subject(subject), error });
  }

  /** A candidate stands by, leads, or leads no more. */
  leader(subject: Subject, change: LeaderChange): void {
    this.#trouble({ type: 'leader', ...this.#subject(subject), ...change });
  }

  /** This process released a lock by force. */
  forced(key: string, fence: number, forcedBy: ForcedBy): void {
    this.#trouble({ type: 'forced', ...this.#subject({ key, caller: FORCING }), fence, forcedBy });
  }

  /**
   * A process has told who released a lock by force that was lost here. This goes to the log alone, since that process
   * has the event.
   */
  explained({ store, key, name, by, process, site, fence }: LostEvent, forcedBy: ForcedBy): void {
    // The log has an own forced release of this process already.
    if (forcedBy.process !== THIS_PROCESS) {
      this.#tell({ type: 'forced', store, key, name, by, process, site, fence, forcedBy });
    }
  }

  #entered(subject: Subject & { readonly fence: number }, how: LockEntry['how']): void {
    const { telemetry } = this.#parts;
    if (telemetry?.followsEntries) {
      telemetry.entered({ ...this.#subject(subject), how, fence: subject.fence });
    }
  }

  /** Reported once per outage and reason: until the store has answered again, further failures are the same news. */
  #failed(subject: Subject, error: LockError, isAttempt: boolean): void {
    const { outages } = this.#parts;
    const { begins, isNews, untold } = outages.failed(error, isAttempt);
    const about = this.#subject(subject);
    if (begins) {
      this.#watchers.push(outages);
    }
    if (isNews) {
      this.#publish({ type: 'storeUnavailable', ...about, error });
    } else {
      this.#log({ type: 'failedAgain', ...about, error });
    }
    if (untold !== undefined) {
      this.#tell({ type: 'storeUnavailable', ...about, error, untold });
    }
  }

  /** Reported once after an outage. */
  #answered(subject: Subject, isAttempt: boolean): void {
    const { outages } = this.#parts;
    const ended = outages.answered(isAttempt);
    if (ended) {
      this.#watchers.splice(this.#watchers.indexOf(outages), 1);
      const answered = { type: 'storeAnswered', ...this.#subject(subject), awayMs: ended.awayMs } as const;
      this.#publish(answered);
      if (ended.isTold) {
        this.#tell(answered);
      }
    }
  }

  #trouble(trouble: LockTrouble, lease?: Lease): void {
    this.#publish(trouble, lease);
    this.#tell(trouble);
  }

  #tell(trouble: LockTrouble): void {
    try {
      this.#parts.onTrouble(trouble);
    } catch {
      // A broken logger must not keep a lock taken.
    }
  }

  #publish(event: LockEvent, lease?: Lease): void {
    lockChannel.publish(event);
    this.#parts.telemetry?.event(event);
    this.#parts.incidents.record(event);
    this.#recorder?.record(event, lease);
    this.#log(event);
  }

  #log(note: DebugNote): void {
    try {
      this.#parts.debug?.(debugLine(note));
    } catch {
      // A broken log changes nothing for the locks.
    }
  }

  #heldLease(lease: Lease): EventOfLock & { readonly fence: number; readonly heldMs: number } {
    return { ...this.#ofLease(lease), heldMs: lease.heldMs };
  }

  #ofLease(lease: Lease): EventOfLock & { readonly fence: number } {
    return { ...this.#subject(lease), fence: lease.fence };
  }

  #subject({ key, caller, shares }: Subject): EventOfLock {
    const { name, by, site, description } = caller;
    const mode = key === '' || caller === FORCING ? undefined : modeOf(shares);
    return { store: this.#parts.store, key, name, by, process: THIS_PROCESS, site, mode, description };
  }
}
