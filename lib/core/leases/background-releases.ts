import { type Clock, LONGEST_COMMAND_MS } from '../seam/time.js';
import { LockStoreError } from '../words/errors.js';
import type { Lease } from './lease.js';
import type { Lifecycle } from '../seam/lifecycle.js';
import type { HoldRecord, LockStore, Place } from '../seam/lock-store.js';

/**
 * For how long at least a lock is released that others may be in by a ticket, whose leases are not known here, in
 * milliseconds.
 */
const TICKET_MS = 60_000;
/**
 * For how long after its sender gave up a command that grants may still be carried out, in milliseconds. The limit of
 * `ServerClock.latest` is a second, to which the time that the last reply took may add another one.
 */
const LATEST_MS = 2_000;

/**
 * Releases locks and places that must not stay, without a caller who waits: a late grant, an attempt of unknown
 * outcome, a lost lease, a place that no call needs.
 */
export class BackgroundReleases {
  readonly #store: LockStore;
  readonly #clock: Clock;
  readonly #lifecycle: Lifecycle;

  constructor(store: LockStore, clock: Clock, lifecycle: Lifecycle) {
    this.#store = store;
    this.#clock = clock;
    this.#lifecycle = lifecycle;
  }

  /**
   * Repeats the release until the store answers, or the lease that it could have granted is over; longer where others
   * may be in the lock. `unanswered`: a release was sent already.
   */
  release(lease: Lease, unanswered = false): void {
    const { ttlMs, hasTicket } = lease;
    const record = lease.record();
    const forMs = LATEST_MS + (hasTicket ? Math.max(ttlMs, TICKET_MS) : ttlMs);
    this.#lifecycle.inBackground(this.#release(unanswered ? asUnanswered(record) : record, forMs));
  }

  /**
   * Gives up a place, and does not repeat the command. If the store does not answer, the place may stay in the queue.
   * It is then given up when the store notifies this process of its turn.
   */
  leave(key: string, { name }: Place): void {
    const { turns } = this.#store;
    if (turns) {
      const leaving = new Promise<void>((resolve) => resolve(turns.leave(key, name)));
      this.#lifecycle.inBackground(leaving.catch(() => undefined));
    }
  }

  async #release(record: HoldRecord, forMs: number): Promise<void> {
    const startedAt = this.#clock.monotonic();
    for (let hold = record; ; hold = asUnanswered(record)) {
      try {
        await this.#store.release(hold);
        return;
      } catch (error) {
        const elapsedMs = this.#clock.monotonic() - startedAt;
        const pauseMs = Math.min(Math.max(hold.ttlMs, elapsedMs) / 10, LONGEST_COMMAND_MS);
        if (this.#lifecycle.isSettling || !(error instanceof LockStoreError) || elapsedMs + pauseMs >= forMs) {
          return;
        }
        await this.#lifecycle.pause(pauseMs);
      }
    }
  }
}

/** A hold whose release was not answered: it is sent again, and leaves a done mark. */
function asUnanswered(hold: HoldRecord): HoldRecord {
  return Object.freeze({ ...hold, unanswered: true });
}
