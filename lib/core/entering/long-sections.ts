import { AsyncResource } from 'node:async_hooks';
import type { Lines } from '../leases/lines.js';
import type { EntryEvents } from './entering-parts.js';

/** How often sections are checked that calls of this process wait for, in milliseconds. */
const PAUSE_MS = 1_000;

/** Checks, while calls wait for others of this process, whether the sections that they wait for take too long. */
export class LongSections {
  readonly #lines: Lines;
  readonly #events: EntryEvents;
  #timer: NodeJS.Timeout | undefined;

  constructor(lines: Lines, events: EntryEvents) {
    this.#lines = lines;
    this.#events = events;
  }

  /** A call begins to wait for another call of this process. */
  watch(): void {
    if (!this.#timer) {
      this.#timer = setTimeout(this.#check, PAUSE_MS).unref();
    }
  }

  /**
   * Reports the sections that calls wait for, and arms the timer again while calls wait. Bound to the async context in
   * which the store was opened: the timer must not keep the context of the call that armed it.
   */
  readonly #check = AsyncResource.bind((): void => {
    this.#timer = undefined;
    for (const { lease } of this.#lines.contended) {
      this.watch();
      if (lease && !lease.hasEnded && lease.state !== 'lingering') {
        this.#events.stillHeld(lease, lease.caller.by, lease.heldMs);
      }
    }
  });
}
