import type { Clock } from '../seam/time.js';
import { findCycle, type Wanted } from './cycle.js';
import { countByName } from '../words/caller.js';
import type { Acquisition } from './acquisition.js';
import type { Lifecycle } from '../seam/lifecycle.js';
import { Waiter, type WaitingLine, type WaitOutcome } from '../calls/waiter.js';

/** What calls that are inside a lock wait for. One map for the stores of all applications: a cycle may lead through several. */
const WANTED = new Map<Acquisition, Wanted>();

/** Follows waits that may be part of a deadlock. It may end one by `Acquisition.withdraw`. */
export interface WaitWatcher {
  watch(acquisition: Acquisition): void;
  forget(acquisition: Acquisition): void;
  stop(): void;
}

/** All calls of this process that wait for a lock of one store. */
export class Waiters {
  readonly #clock: Clock;
  readonly #lifecycle: Lifecycle;
  readonly #most: number;
  /** Undefined where it is off. */
  readonly #deadlocks: WaitWatcher | undefined;
  readonly #waiting = new Map<Waiter, Acquisition>();
  /** Those that are inside a lock already; `maxWaiters` does not count them. */
  readonly #inside = new Set<Waiter>();
  /** Those that ask the store again. They wait on, until it grants. */
  readonly #asking = new Set<Acquisition>();

  constructor(clock: Clock, lifecycle: Lifecycle, most: number, deadlocks: WaitWatcher | undefined) {
    this.#clock = clock;
    this.#lifecycle = lifecycle;
    this.#most = most;
    this.#deadlocks = deadlocks;
  }

  /** Whether as many calls wait, for whichever keys, as may. */
  get isFull(): boolean {
    return this.#waiting.size - this.#inside.size + this.#asking.size >= this.#most;
  }

  get count(): number {
    return this.#waiting.size + this.#asking.size;
  }

  /** Waits until `until` at the latest, or the call's own limit; for what is `wanted`, where other calls may find a cycle through it. */
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
      this.#waiting.delete(ended);
      this.#inside.delete(ended);
      WANTED.delete(acquisition);
      line?.delete(ended);
    });
    if (wanted) {
      WANTED.set(acquisition, wanted);
    }
    acquisition.waitsFor(key, line?.isInside === true, waiter);
    this.#waiting.set(waiter, acquisition);
    if (line?.isInside) {
      this.#inside.add(waiter);
    }
    line?.add(waiter);
    // What joins by a ticket has no line: it waits for the store, and for no other call.
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
    }
  }

  /** The reply to a call that has waited, and counts as one that waits until it comes. */
  async asking<T>(acquisition: Acquisition, reply: Promise<T>): Promise<T> {
    this.#asking.add(acquisition);
    try {
      return await reply;
    } finally {
      this.#asking.delete(acquisition);
    }
  }

  /**
   * Waits in line for a lease that another call has. Throws `LockNotAcquiredError` where calls inside that lease wait
   * for this one.
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
    return [...this.#waiting.values(), ...this.#asking];
  }

  countByName(): ReadonlyMap<string, number> {
    return countByName(this.calls.map(({ call }) => call.caller));
  }

  /** Ends every wait, at shutdown. */
  endAll(): void {
    for (const waiter of [...this.#waiting.keys()]) {
      waiter.end('shutdown');
    }
    this.#deadlocks?.stop();
  }
}
