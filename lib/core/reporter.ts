import type { Availability } from './availability.js';
import { debugLine, type DebugNote } from './debug-line.js';
import type { LockError, LostReason, NotAcquiredReason } from './errors.js';
import type { Lease } from './lease.js';
import { hasListeners, publish, type EventOfLock, type LockEvent } from './lock-event.js';
import type { Busy } from './lock-store.js';
import { OncePerKey } from './once-per-key.js';

/** Events that an operator should see, also without a listener on the channel. */
export type LockTrouble = Extract<
  LockEvent,
  { type: 'lost' | 'endedLate' | 'heldLong' | 'unreleased' | 'releaseFailed' | 'storeUnavailable' | 'storeAnswered' }
>;

/** What an event is about. */
interface Subject {
  readonly key: string;
  readonly by: string;
}

/** A check of the health is about no key and of no call. */
const NOBODY: Subject = { key: '', by: '' };

/** How many times a ttl a section may last while others wait, until that is worth a warning. */
const LONG = 10;

/** Reports what happens to the locks of one store. Nothing it calls can stop a release. */
export class Reporter {
  readonly #store: string;
  readonly #onTrouble: (trouble: LockTrouble) => void;
  readonly #availability: Availability;
  /** Writes a line of the debug log; undefined where that is off. */
  readonly #debug: ((line: string) => void) | undefined;
  readonly #long = new OncePerKey();

  constructor(store: string, onTrouble: (trouble: LockTrouble) => void, availability: Availability, debug?: (line: string) => void) {
    this.#store = store;
    this.#onTrouble = onTrouble;
    this.#availability = availability;
    this.#debug = debug;
  }

  /** A call has the lock: the store granted it, or the lease of the call before serves this one. */
  acquired(lease: Lease, waitedMs: number): void {
    if (!lease.isServed) {
      this.#answered(lease, true);
    }
    if (this.#isRead) {
      this.#publish({ type: 'acquired', ...this.#subject(lease), fence: lease.fence, waitedMs });
    }
  }

  /** The store answered that another owner holds the lock; `waits` says whether the call may wait for it. */
  busy(lease: Lease, { holder, remainingMs }: Busy, waits: boolean): void {
    this.#answered(lease, true);
    if (this.#debug) {
      this.#log({ type: 'busy', ...this.#subject(lease), heldBy: holder.by, heldMs: holder.heldMs, remainingMs });
    }
    if (waits) {
      this.stillHeld(lease.key, holder.by, holder.heldMs, lease.ttlMs);
    }
  }

  /** A call begins to wait for another one of this process. */
  queued(lease: Lease, behind: number): void {
    if (this.#debug) {
      this.#log({ type: 'queued', ...this.#subject(lease), behind });
    }
  }

  reentered({ key, fence }: Lease, by: string): void {
    if (this.#debug) {
      this.#log({ type: 'reentered', ...this.#subject({ key, by }), fence });
    }
  }

  waited(key: string, by: string, waitedMs: number, gaveUp: NotAcquiredReason | undefined): void {
    if (this.#isRead) {
      this.#publish({ type: 'waited', store: this.#store, key, by, waitedMs, gaveUp });
    }
  }

  /**
   * Others wait for a lock that has been held for so long. Reported once for each key. `ttlMs` is that of the holder, or
   * of the call that waits where another process is the holder.
   */
  stillHeld(key: string, by: string, heldMs: number, ttlMs: number): void {
    // A lock that is only reserved names no holder.
    if (heldMs > LONG * ttlMs && by !== '' && this.#long.isNew(key)) {
      this.#trouble({ type: 'heldLong', ...this.#subject({ key, by }), heldMs, ttlMs });
    }
  }

  released(lease: Lease, heldMs: number): void {
    if (this.#isRead) {
      this.#publish({ type: 'released', ...this.#subject(lease), fence: lease.fence, heldMs });
    }
  }

  lost(lease: Lease, heldMs: number, reason: LostReason): void {
    this.#trouble({ type: 'lost', ...this.#subject(lease), fence: lease.fence, heldMs, reason });
  }

  endedLate(lease: Lease, heldMs: number, thrown: unknown): void {
    this.#trouble({ type: 'endedLate', ...this.#subject(lease), fence: lease.fence, heldMs, thrown });
  }

  unreleased(lease: Lease, heldMs: number): void {
    this.#trouble({ type: 'unreleased', ...this.#subject(lease), fence: lease.fence, heldMs });
  }

  releaseFailed(lease: Lease, error: LockError): void {
    this.#trouble({ type: 'releaseFailed', ...this.#subject(lease), fence: lease.fence, error });
  }

  /** The store failed an attempt to acquire. */
  attemptFailed(lease: Lease, error: LockError): void {
    this.#failed(lease, error, true);
  }

  /** The store failed a renewal. */
  renewalFailed(lease: Lease, error: LockError): void {
    this.#failed(lease, error, false);
  }

  /** The store answered a renewal. */
  renewed(lease: Lease): void {
    this.#answered(lease, false);
  }

  /** A check of the health got no answer. */
  checkFailed(error: LockError): void {
    this.#failed(NOBODY, error, false);
  }

  /** The store answered a check of the health. */
  checkAnswered(): void {
    this.#answered(NOBODY, false);
  }

  /** Reported once per outage: until the store has answered again, further failures are the same news. */
  #failed(subject: Subject, error: LockError, isAttempt: boolean): void {
    if (this.#availability.failed(error, isAttempt)) {
      this.#trouble({ type: 'storeUnavailable', ...this.#subject(subject), error });
    } else if (this.#debug) {
      this.#log({ type: 'failedAgain', ...this.#subject(subject), error });
    }
  }

  /** Reported once after an outage. */
  #answered(subject: Subject, isAttempt: boolean): void {
    const awayMs = this.#availability.answered(isAttempt);
    if (awayMs !== undefined) {
      this.#trouble({ type: 'storeAnswered', ...this.#subject(subject), awayMs });
    }
  }

  /** Whether events are read: one without a reader is not made. */
  get #isRead(): boolean {
    return this.#debug !== undefined || hasListeners();
  }

  #trouble(trouble: LockTrouble): void {
    this.#publish(trouble);
    try {
      this.#onTrouble(trouble);
    } catch {
      // A broken logger must not keep a lock taken.
    }
  }

  #publish(event: LockEvent): void {
    publish(event);
    this.#log(event);
  }

  #log(note: DebugNote): void {
    try {
      this.#debug?.(debugLine(note));
    } catch {
      // The same.
    }
  }

  #subject({ key, by }: Subject): EventOfLock {
    return { store: this.#store, key, by };
  }
}
