import { AsyncResource } from 'node:async_hooks';
import type { Clock } from './clock.js';
import type { LocalQueue } from './local-queue.js';
import type { Reporter } from './reporter.js';

/** How often the sections are looked at that calls of this process wait for, in milliseconds. */
const PAUSE_MS = 1_000;

/** Looks, while calls wait for others of this process, whether what they wait for takes too long. */
export class LongSections {
  readonly #queue: LocalQueue;
  readonly #clock: Clock;
  readonly #reporter: Reporter;
  #timer: NodeJS.Timeout | undefined;

  constructor(queue: LocalQueue, clock: Clock, reporter: Reporter) {
    this.#queue = queue;
    this.#clock = clock;
    this.#reporter = reporter;
  }

  /** A call begins to wait for another one of this process. */
  watch(): void {
    if (!this.#timer) {
      this.#timer = setTimeout(this.#look, PAUSE_MS).unref();
    }
  }

  /** Bound to where the store was opened: the timer must not keep the context of the call that armed it. */
  readonly #look = AsyncResource.bind((): void => {
    this.#timer = undefined;
    const now = this.#clock.monotonic();
    for (const { hold } of this.#queue.contended()) {
      this.watch();
      if (hold && !hold.ended && !hold.lingering) {
        this.#reporter.stillHeld(hold.key, hold.by, now - hold.acquiredAt, hold.ttlMs);
      }
    }
  });
}
