import type { Clock } from '../seam/time.js';
import { findCycle, type Wanted } from './cycle.js';
import type { Acquisition } from './acquisition.js';
import type { Lifecycle } from '../seam/lifecycle.js';
import { Waiter, type WaitingLine, type WaitOutcome } from '../calls/waiter.js';

/**
 * The locks that calls inside a lock wait for. One map for the stores of all applications: a cycle may lead through
 * several.
 */
const WANTED = new Map<Acquisition, Wanted>();

/** Follows waits that may be part of a deadlock. It may end one by `Acquisition.withdraw`. */
export interface WaitWatcher {
  watch(acquisition: Acquisition): void;
  forget(acquisition: Acquisition): void;
  stop(): void;
}

/** How many calls of a process may wait: for one key, and for all of a store together. */
export interface MaxWaiters {
  readonly perKey: number;
  readonly perProcess: number;
}

/** All calls of this process that wait for a lock of one store. */
export class Waiters {
  readonly #clock: Clock;
  readonly #lifecycle: Lifecycle;
  readonly #most: MaxWaiters;
  /** Undefined where it is off. */
  readonly #deadlocks: WaitWatcher | undefined;
  readonly #waiters = new Set<Waiter>();
  /**
   * The calls that wait, with the key: from when they begin to until they have its lock, also while they ask the store
   * again.
   */
  readonly #waiting = new Map<Acquisition, string>();
  /** The calls that are inside the lock already; `maxWaiters` does not count them. */
  readonly #inside = new Set<Acquisition>();
  /** How many of the others wait for each key. */
  readonly #perKey = new Map<string, number>();

  constructor(clock: Clock, lifecycle: Lifecycle, most: MaxWaiters, deadlocks: WaitWatcher | undefined) {
    this.#clock = clock;
    this.#lifecycle = lifecycle;
    this.#most = most;
    this.#deadlocks = deadlocks;
  }

  /**
   * Whether as many calls wait as may, so that another call must not begin to wait. A call that waits already goes on.
   */
  isFullFor(acquisition: Acquisition, key: string): boolean {
    const { perKey, perProcess } = this.#most;
    const isFull = this.#waiting.size - this.#inside.size >= perProcess || (this.#perKey.get(key) ?? 0) >= perKey;
    return isFull && acquisition.call.waitMs > 0 && !this.#waiting.has(acquisition);
  }

  get count(): number {
    return this.#waiting.size;
  }

  /**
   * Waits until `until`, or the call's own limit, at the latest. `wanted`: the lock that it waits for, where other
   * calls may find a cycle through it.
   */
  async wait(key: string, acquisition: Acquisition, until: number, line?: WaitingLine, wanted?: Wanted): Promise<WaitOutcome> {
    const { call, giveUpAt } = acquisition;
    const limitMs = Math.min(until, giveUpAt) - this.#clock.monotonic();
    if (acquisition.withdrawn) {
      throw acquisition.withdrawn;
    }
    const gaveUp = acquisition.gaveUp(this.#lifecycle.isClosing);
    if (gaveUp || limitMs <= 0) {
      return gaveUp ?? 'busy';
    }
    const waiter = new Waiter(limitMs, call.signal, (ended) => {
      this.#waiters.delete(ended);
      WANTED.delete(acquisition);
      line?.delete(ended);
    });
    if (wanted) {
      WANTED.set(acquisition, wanted);
    }
    acquisition.waitsFor(key, line?.isInside === true, waiter);
    this.#waiters.add(waiter);
    this.#counts(acquisition, key, line?.isInside === true);
    line?.add(waiter);
    // A call that joins by a ticket has no line: it waits for the store, and for no other call.
    if (this.#deadlocks && line && acquisition.isNested && call.ticket === undefined) {
      this.#deadlocks.watch(acquisition);
    }
    return waiter.outcome;
  }

  /** A call has the lock that it waited for, or gave up. */
  isOver(acquisition: Acquisition): void {
    if (acquisition.hasWaited) {
      acquisition.hasNext();
      this.#deadlocks?.forget(acquisition);
      this.#forget(acquisition);
    }
  }

  /**
   * Waits in line for a lease that another call has. Throws `LockNotAcquiredError` at once where a call inside that
   * lease waits, directly or through other calls, for the call that would wait here.
   */
  async waitFor(wanted: Wanted, key: string, acquisition: Acquisition, line: WaitingLine): Promise<WaitOutcome> {
    // A call that does not wait is part of no cycle.
    const cycle = acquisition.call.waitMs > 0 ? findCycle(acquisition, key, wanted, WANTED) : undefined;
    if (cycle) {
      throw acquisition.refused(key, 'cycle', wanted.lease, cycle);
    }
    return this.wait(key, acquisition, acquisition.giveUpAt, line, wanted);
  }

  get calls(): readonly Acquisition[] {
    return [...this.#waiting.keys()];
  }

  /** Ends every wait, at shutdown. */
  endAll(): void {
    for (const waiter of [...this.#waiters]) {
      waiter.end('shutdown');
    }
    this.#deadlocks?.stop();
  }

  #counts(acquisition: Acquisition, key: string, isInside: boolean): void {
    if (this.#waiting.has(acquisition)) {
      return;
    }
    this.#waiting.set(acquisition, key);
    if (isInside) {
      this.#inside.add(acquisition);
    } else {
      this.#perKey.set(key, (this.#perKey.get(key) ?? 0) + 1);
    }
  }

  #forget(acquisition: Acquisition): void {
    const key = this.#waiting.get(acquisition);
    if (key === undefined) {
      return;
    }
    this.#waiting.delete(acquisition);
    if (this.#inside.delete(acquisition)) {
      return;
    }
    const others = (this.#perKey.get(key) ?? 0) - 1;
    if (others > 0) {
      this.#perKey.set(key, others);
    } else {
      this.#perKey.delete(key);
    }
  }
}
