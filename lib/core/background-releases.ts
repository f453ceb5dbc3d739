import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from './clock.js';
import { isLockError, LockStoreError, type LockError } from './errors.js';
import type { Hold } from './hold.js';
import { commandLimit } from './lease.js';
import type { HoldRecord, LockStore, Place } from './lock-store.js';

/** The longest pause before a failed release is sent again, and the longest time for the last ones, in milliseconds. */
const LONGEST_PAUSE_MS = 1_000;
/** For how long at least a lock is given back that others are in by a ticket, whose leases nobody here knows, in milliseconds. */
const SHARED_MS = 60_000;

/**
 * Gives back, without a caller who waits, what must not stay: a late grant, an attempt of unknown outcome, a lost lease,
 * a place that nobody needs.
 */
export class BackgroundReleases {
  readonly #store: LockStore;
  readonly #clock: Clock;
  readonly #running = new Set<Promise<void>>();
  #closing = false;

  constructor(store: LockStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Tries until the store answers, or the lease that it could have granted is over; longer where others may keep the lock alive. */
  abandon({ key, owner, id, fence, ttlMs, leaseMs, lingering, by, shared }: Hold): void {
    this.#run(
      this.#release(
        { key, owner, id, fence, ttlMs, limitMs: commandLimit(leaseMs), lingering, by },
        shared ? Math.max(ttlMs, SHARED_MS) : ttlMs,
      ),
    );
  }

  /** Gives up a place. One that stays because nobody answers comes to its turn later, and is then given up. */
  leave(key: string, { name }: Place): void {
    this.#run(this.#store.turns?.leave(key, name).catch(() => undefined) ?? Promise.resolve());
  }

  #run(release: Promise<void>): void {
    this.#running.add(release);
    void release.finally(() => this.#running.delete(release));
  }

  /** Waits for what is on its way, which is not repeated any more, for as long as one command may take. */
  async settle(): Promise<void> {
    this.#closing = true;
    await Promise.race([Promise.all(this.#running), sleep(LONGEST_PAUSE_MS, undefined, { ref: false })]);
  }

  async #release(hold: HoldRecord, forMs: number): Promise<void> {
    const startedAt = this.#clock.monotonic();
    for (;;) {
      try {
        await this.#store.release(hold);
        return;
      } catch (error) {
        const elapsedMs = this.#clock.monotonic() - startedAt;
        const pauseMs = Math.min(Math.max(hold.ttlMs, elapsedMs) / 10, LONGEST_PAUSE_MS);
        if (this.#closing || !(error instanceof LockStoreError) || elapsedMs + pauseMs >= forMs) {
          return;
        }
        await sleep(pauseMs, undefined, { ref: false });
      }
    }
  }
}

/** What a store rejects with is a lock error; anything else is a defect of the store, and reported as its failure. */
export function asLockError(error: unknown, key: string): LockError {
  return isLockError(error)
    ? error
    : new LockStoreError(`Lock "${key}": the store failed. Make sure that it rejects with a LockStoreError.`, key, {
        cause: error,
        unknown: true,
      });
}
