import type { Clock } from './clock.js';
import { findCycle, type Wanted } from './cycle.js';
import type { Entry } from './entry.js';
import type { LockFrame } from './lock-frame.js';
import { Waiter, type WaitingLine, type WaitOutcome } from './waiter.js';

/** Everybody in this process who waits for a lock of one store. */
export class Waiters {
  readonly #clock: Clock;
  readonly #most: number;
  readonly #waiting = new Set<Waiter>();
  /** Those of them whom no limit concerns. */
  readonly #inside = new Set<Waiter>();
  readonly #frames = new Map<LockFrame, Wanted>();
  #closed = false;

  constructor(clock: Clock, most: number) {
    this.#clock = clock;
    this.#most = most;
  }

  /** Whether nobody may wait or acquire any more. */
  get closed(): boolean {
    return this.#closed;
  }

  /** Whether so many callers wait, for whichever keys, that nobody else may. */
  get isFull(): boolean {
    return this.#waiting.size - this.#inside.size >= this.#most;
  }

  /** Waits until `until` at the latest, or the call's own limit. */
  async wait(key: string, entry: Entry, until: number, line?: WaitingLine): Promise<WaitOutcome> {
    const limitMs = Math.min(until, entry.giveUpAt) - this.#clock.monotonic();
    if (this.#closed) {
      return 'closed';
    }
    if (entry.call.signal?.aborted) {
      return 'aborted';
    }
    if (limitMs <= 0) {
      return 'timedOut';
    }
    entry.waitedFor = key;
    const waiter = new Waiter(limitMs, entry.call.signal, (ended) => {
      this.#waiting.delete(ended);
      this.#inside.delete(ended);
      line?.delete(ended);
    });
    this.#waiting.add(waiter);
    if (line?.isInside) {
      this.#inside.add(waiter);
    }
    line?.add(waiter);
    return waiter.outcome;
  }

  /** Waits in line for what `wanted` has. Throws `LockNotAcquiredError` where its calls wait for this one. */
  async waitFor(wanted: Wanted, key: string, entry: Entry, line: WaitingLine): Promise<WaitOutcome> {
    const { frame } = entry;
    const cycle = findCycle(frame, wanted, this.#frames);
    if (cycle) {
      throw entry.refused(key, 'cycle', wanted.hold, [...cycle, key]);
    }
    this.#frames.set(frame, wanted);
    try {
      return await this.wait(key, entry, entry.giveUpAt, line);
    } finally {
      this.#frames.delete(frame);
    }
  }

  /** Ends every wait, and all that would begin. */
  close(): void {
    this.#closed = true;
    for (const waiter of [...this.#waiting]) {
      waiter.close();
    }
  }
}
