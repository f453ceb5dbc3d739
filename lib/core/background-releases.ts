import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from './clock.js';
import { isLockError, LockStoreError, type LockError } from './errors.js';
import type { HoldRecord, LockStore, Place } from './lock-store.js';

/** The longest pause before a failed release is sent again, and the longest time for the last ones, in milliseconds. */
const LONGEST_PAUSE_MS = 1_000;

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

  /** Tries until the store answers, or the lease that it could have granted is over. */
  abandon({ key, owner, id, fence, ttlMs, by }: HoldRecord): void {
    this.#run(this.#release({ key, owner, id, fence, ttlMs, by }));
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

  async #release(hold: HoldRecord): Promise<void> {
    const until = this.#clock.monotonic() + hold.ttlMs;
    for (;;) {
      try {
        await this.#store.release(hold);
        return;
      } catch (error) {
        const pauseMs = Math.min(hold.ttlMs / 10, LONGEST_PAUSE_MS);
        if (this.#closing || !(error instanceof LockStoreError) || this.#clock.monotonic() + pauseMs >= until) {
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
