import { AsyncResource } from 'node:async_hooks';
import { type Clock, LONGEST_COMMAND_MS } from './time.js';
import { LockStoreError } from '../words/errors.js';
import type { AroundCall } from './wrapped-store.js';

/** How much longer than its limit a store may take until core stops waiting, in milliseconds. */
const GRACE_MS = 100;
/** How often calls are checked, in milliseconds: the most by which core stops waiting later than that. */
const SWEEP_MS = 50;

interface Pending {
  readonly key: string;
  readonly limitMs: number;
  readonly endsAt: number;
  readonly reject: (error: Error) => void;
}

/**
 * Limits the time of every call to a store that does not keep its limits itself, with one timer for all calls. A store
 * whose leases do not end by time is expected to answer at once, and needs no limits.
 */
export class TimeLimits {
  readonly #clock: Clock;
  readonly #pending = new Set<Pending>();
  #timer: NodeJS.Timeout | undefined;
  #sweepsAt = 0;
  #wasLate = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * The call's result; rejects with a `LockStoreError` of unknown outcome where the store takes much longer than
   * `limitMs`.
   */
  readonly around: AroundCall = (answer, _, key, limitMs = LONGEST_COMMAND_MS) =>
    new Promise((resolve, reject) => {
      const pending = { key, limitMs, endsAt: this.#clock.monotonic() + limitMs + GRACE_MS, reject };
      this.#pending.add(pending);
      this.#arm();
      // A store of somebody's own may answer with no promise.
      Promise.resolve(answer).then(
        (result) => {
          this.#pending.delete(pending);
          resolve(result);
        },
        (error: unknown) => {
          this.#pending.delete(pending);
          reject(error);
        },
      );
    });

  #arm(): void {
    if (!this.#timer) {
      this.#sweepsAt = this.#clock.monotonic() + SWEEP_MS;
      this.#timer = setTimeout(this.#sweep, SWEEP_MS).unref();
    }
  }

  /**
   * Bound to the context in which the store was opened: the timer must not keep the context of the call that armed it.
   */
  readonly #sweep = AsyncResource.bind((): void => {
    this.#timer = undefined;
    const now = this.#clock.monotonic();
    // After a blocked event loop, answers may lie unread: they are read before the next sweep.
    this.#wasLate = now - this.#sweepsAt > SWEEP_MS && !this.#wasLate;
    if (!this.#wasLate) {
      this.#stopWaiting(now);
    }
    if (this.#pending.size > 0) {
      this.#arm();
    }
  });

  #stopWaiting(now: number): void {
    for (const pending of this.#pending) {
      if (now >= pending.endsAt) {
        this.#pending.delete(pending);
        pending.reject(
          new LockStoreError(
            `Lock "${pending.key}": the store did not answer within ${Math.max(0, Math.round(pending.limitMs))} ms. Find out what holds up its servers or this ` +
              'process. A store of your own has to reject with a LockStoreError after the limit that it is given.',
            pending.key,
            { unknown: true },
          ),
        );
      }
    }
  }
}
