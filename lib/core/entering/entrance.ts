import type { Acquisition } from './acquisition.js';
import { attempt, type AttemptResult } from '../leases/attempt.js';
import { whyRefused } from './contender.js';
import { enclosingLock } from './enclosing-locks.js';
import type { EnteringParts } from './entering-parts.js';
import { KeyByKey } from './key-by-key.js';
import { Lease } from '../leases/lease.js';
import type { Line } from '../leases/line.js';
import { refuseTooLong } from '../leases/longest-lease.js';
import { LockConfigurationError, type LockError } from '../words/errors.js';
import type { LockStore } from '../seam/lock-store.js';
import { atMost, ttlUntil } from '../seam/time.js';

/** Learns how a call's way into its locks has ended: one of the two is called, once. */
export interface EntryListener {
  entered(): void;
  refused(error: unknown): void;
}

/** Where calls enter the locks of one store. A call that meets nobody goes straight; the others enter key by key. */
export class Entrance {
  readonly #parts: EnteringParts;
  readonly #keyByKey: KeyByKey;

  constructor(parts: EnteringParts) {
    this.#parts = parts;
    this.#keyByKey = new KeyByKey(parts);
  }

  /**
   * Enters the locks on all keys of a call, in their order; where one lock is refused, leaves the locks that it
   * entered. A call that meets nobody goes straight: it is inside at once, or with the first answer of the store.
   */
  enter(acquisition: Acquisition, listener: EntryListener): void {
    try {
      if (this.#parts.store.longestLeaseMs !== undefined) {
        this.#refuseTooLong(acquisition);
      }
      if (acquisition.call.shares !== undefined) {
        refuseUnoffered(this.#parts.store, acquisition);
      }
      const refusal = this.#refusalOf(acquisition);
      if (refusal) {
        throw refusal;
      }
      if (!this.#goesStraight(acquisition, listener)) {
        this.#goOn(this.#keyByKey.enter(acquisition), acquisition, listener);
      }
    } catch (error) {
      this.#refuse(error, acquisition, listener);
    }
  }

  /** Why a call is refused before it asks for its locks, or once it has them. */
  #refusalOf(acquisition: Acquisition): LockError | undefined {
    const { frame, call } = acquisition;
    if (frame.transaction?.loss) {
      // Nobody else can tell the transaction, which may still roll back.
      return frame.transaction.loss;
    }
    // Its caller has its answer, and the transaction around it must not keep a lock that nobody has.
    return call.signal?.aborted ? acquisition.refused(frame.keys[0] as string, 'aborted') : undefined;
  }

  /** A nested call raises the lease of the lock that it is in, and `minHold` asks for one that covers it. */
  #refuseTooLong({ frame, call: { ttlMs, minHoldMs } }: Acquisition): void {
    const { store } = this.#parts;
    const leaseMs = Math.max(ttlMs, minHoldMs > 0 ? Math.ceil(ttlUntil(minHoldMs)) : 0);
    refuseTooLong(store, frame.keys[0] as string, leaseMs, leaseMs > ttlMs ? 'minHold' : 'ttl');
  }

  /**
   * Enters the lease of an enclosing call, if the call has to wait for nobody in it; or opens the line of a key that no
   * other call here wants, and sends the first attempt; or sends an attempt beside that one, where the key is shared.
   * False, with nothing done, where the call has to go key by key.
   */
  #goesStraight(acquisition: Acquisition, listener: EntryListener): boolean {
    const { frame, call } = acquisition;
    if (frame.keys.length > 1 || call.ticket !== undefined || frame.transaction) {
      return false;
    }
    const [key] = frame.keys as readonly [string];
    const enclosing = call.reentry === 'context' && frame.parent ? enclosingLock(this.#parts.leases, key, frame, call.shares) : undefined;
    if (enclosing) {
      return enclosing instanceof Lease && this.#reenters(enclosing, acquisition, listener);
    }
    const { availability, clock, lifecycle, lines, store } = this.#parts;
    if (lifecycle.isClosing || !lines.mayGoStraight(key, call) || (call.onUnavailable === 'throw' && availability.isAway)) {
      return false;
    }
    const lease = acquisition.newLease(key);
    if (call.shares !== undefined && this.#entersBeside(lease, acquisition, listener)) {
      return true;
    }
    const line = call.shares === undefined ? lines.open(key) : lines.openUnlessTaken(key);
    lifecycle.begin();
    void attempt(
      store,
      lease,
      clock,
      acquisition.started,
      acquisition.answerBy,
      lines.prepare(line, lease, call.waitMs > 0),
      (result) => this.#answered(result, lease, line, acquisition, listener),
      (error) => {
        lines.endTurn(line);
        lifecycle.end();
        this.#refuse(error, acquisition, listener);
      },
    );
    return true;
  }

  /** Enters the lease of a reader of this process, beside its call; false where there is none to enter. */
  #entersBeside(lease: Lease, acquisition: Acquisition, listener: EntryListener): boolean {
    const { leases, lines } = this.#parts;
    const beside = lines.besideReader(lease);
    if (beside) {
      leases.start(lease, beside, acquisition, undefined);
      acquisition.frame.take(lease);
      this.#complete(acquisition, listener, lease.acquiredAt);
    }
    return beside !== undefined;
  }

  /** Enters a lease; false, with nothing done, where the call would have to wait for another call inside. */
  #reenters(lease: Lease, acquisition: Acquisition, listener: EntryListener): boolean {
    const { frame, call } = acquisition;
    if (lease.shares === 'read') {
      acquisition.refuseUpgrade(lease);
    }
    if (!lease.calls.admits(frame)) {
      return false;
    }
    lease.calls.push(frame);
    lease.raise(call.ttlMs);
    if (this.#parts.leases.isWatched) {
      this.#parts.events.reentered(lease, call.caller);
    }
    frame.take(lease);
    this.#complete(acquisition, listener, acquisition.started.monotonic);
    return true;
  }

  /** A call whose lock is not granted at once contends on, in the line that it opened. */
  #answered(result: AttemptResult, lease: Lease, line: Line | undefined, acquisition: Acquisition, listener: EntryListener): void {
    const { leases, lifecycle } = this.#parts;
    if (result.outcome === 'granted' && !acquisition.gaveUp(lifecycle.isClosing)) {
      leases.start(lease, result, acquisition, line);
      acquisition.frame.take(lease);
      this.#complete(acquisition, listener, lease.acquiredAt);
    } else if (line) {
      line.goesOnWith(result);
      this.#goOn(this.#keyByKey.enter(acquisition, { lease, line }), acquisition, listener);
    } else {
      this.#goBehind(result, lease, acquisition, listener);
    }
    lifecycle.end();
  }

  /** A call that asked beside the contender, and may not enter now, waits behind it, if it waits at all. */
  #goBehind(result: AttemptResult, lease: Lease, acquisition: Acquisition, listener: EntryListener): void {
    const { events, lifecycle, releases } = this.#parts;
    acquisition.askedBeside();
    if (result.outcome === 'granted' || result.outcome === 'late' || lease.isUnanswered) {
      releases.release(lease);
    }
    if (result.outcome === 'busy') {
      acquisition.sees(result.busy);
      events.busy(lease, result.busy, acquisition.call.waitMs > 0);
    } else if (result.outcome === 'failed') {
      events.attemptFailed(lease, result.error);
    }
    const reason = acquisition.gaveUp(lifecycle.isClosing) ?? (acquisition.leftMs > 0 ? undefined : 'busy');
    if (reason) {
      this.#refuse(whyRefused(reason, result, lease, acquisition), acquisition, listener);
    } else {
      this.#goOn(this.#keyByKey.enter(acquisition), acquisition, listener);
    }
  }

  #goOn(entering: Promise<void>, acquisition: Acquisition, listener: EntryListener): void {
    entering.then(
      () => this.#complete(acquisition, listener, this.#parts.clock.monotonic()),
      (error: unknown) => this.#refuse(error, acquisition, listener),
    );
  }

  /** The call has all its locks, since `now`. */
  #complete(acquisition: Acquisition, listener: EntryListener, now: number): void {
    // Both may have happened while it waited.
    const refusal = this.#refusalOf(acquisition);
    if (refusal) {
      this.#refuse(refusal, acquisition, listener);
      return;
    }
    this.#parts.leases.limitHold(acquisition);
    acquisition.frame.entered(now - acquisition.started.monotonic);
    this.#ended(acquisition, undefined);
    listener.entered();
  }

  #refuse(refusal: unknown, acquisition: Acquisition, listener: EntryListener): void {
    const refuse = (): void => {
      this.#ended(acquisition, refusal);
      listener.refused(refusal);
    };
    const leaving = acquisition.frame.leave();
    if (leaving) {
      // A store that is slow releases the taken locks in the background: the caller's time is up.
      void atMost(leaving, acquisition.answerBy - this.#parts.clock.monotonic()).then(refuse);
    } else {
      refuse();
    }
  }

  #ended(acquisition: Acquisition, refusal: unknown): void {
    const { events, leases } = this.#parts;
    acquisition.frame.transaction?.hasEntered(acquisition.frame);
    acquisition.ended(refusal);
    if (refusal !== undefined || leases.isWatched) {
      events.ended(acquisition, refusal);
    }
  }
}

/** Throws where the store does not offer what the call wants. */
function refuseUnoffered({ shared, permits }: LockStore, { store, call: { shares, caller }, frame }: Acquisition): void {
  if (shares === 'read' ? shared : permits) {
    return;
  }
  const [what, capability, instead] = shares === 'read' ? READING : PERMITS;
  throw new LockConfigurationError(
    `${caller.site}: the store '${store}' offers no ${what} (the capability '${capability}'). Use a store in memory, Redis or PostgreSQL, ${instead}.`,
    frame.keys[0] as string,
  );
}

const READING = ['locks of read mode', 'shared', "or leave out mode: 'read'"] as const;
const PERMITS = ['semaphores', 'permits', 'or a lock'] as const;
