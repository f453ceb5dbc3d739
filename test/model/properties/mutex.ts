import type { Clock } from '../../../lib/core/seam/time.js';
import type { HoldRecord } from '../../../lib/core/seam/lock-store.js';
import { DONE_MS } from '../../../lib/kit/protocol.js';

/**
 * The promise of a key: a re-entrant mutex with fences and leases. It is shown each answer of the store, and throws
 * where an answer breaks the promise. Who gets a free lock is left open.
 */
export class Mutex {
  readonly #clock: Clock;
  readonly #holds = new Map<string, HoldRecord>();
  /** Only what is marked answers a second release as the first; nothing that was released comes in again. */
  readonly #released = new Map<string, { readonly answer: boolean; readonly until: number; readonly isMarked: boolean }>();
  #owner: string | undefined;
  #ttlMs = 0;
  #endsAt = 0;
  /** The fence of the last grant, of whichever owner. */
  #fence = 0;
  /** The last one that it reserved. */
  #lastFence = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Of the last grant. */
  get fence(): number {
    return this.#fence;
  }

  get isFree(): boolean {
    return this.#owner === undefined || this.#endsAt <= this.#clock.monotonic();
  }

  /** Who is in. */
  get holds(): readonly HoldRecord[] {
    return this.isFree ? [] : [...this.#holds.values()];
  }

  /**
   * The store looks at the key and finds out if the lease has ended; a clock that is set back later does not revive it.
   */
  look(): void {
    if (this.isFree) {
      this.#owner = undefined;
    }
  }

  acquired(hold: HoldRecord, fence: number | undefined): void {
    if (this.#wasReleased(hold)) {
      expect(fence, undefined, `the fence of ${hold.id}, which was released before`);
      return;
    }
    this.look();
    if (this.#has(hold)) {
      expect(fence, this.#fence, `the fence of ${hold.id}, which is in`);
    } else if (!this.isFree) {
      expect(fence, undefined, `the fence of ${hold.id}, while another owner has the lock`);
      // More time left than was ever asked for means that the clock was set back.
      this.#endsAt = Math.min(this.#endsAt, this.#clock.monotonic() + this.#ttlMs);
    } else if (fence !== undefined) {
      expect(fence > this.#lastFence, true, `that fence ${fence} is above ${this.#lastFence}`);
      this.#owner = hold.owner;
      this.#fence = fence;
      this.#lastFence = fence + hold.fences - 1;
      this.#holds.clear();
      this.#ttlMs = 0;
      this.#endsAt = 0;
    }
    if (fence !== undefined) {
      this.#enter(hold);
    }
  }

  joined(hold: HoldRecord, entered: boolean): void {
    this.look();
    const may = !this.isFree && this.#owner === hold.owner && this.#fence === hold.fence && !this.#wasReleased(hold);
    expect(entered, may, `whether ${hold.id} may join`);
    if (entered) {
      this.#enter(hold);
    }
  }

  renewed(hold: HoldRecord, held: boolean): void {
    this.look();
    expect(held, this.#has(hold) && this.#fence === hold.fence, `whether the lease of ${hold.id} can be renewed`);
    if (held) {
      if (hold.lingering && this.#holds.size === 1) {
        this.#endsAt = 0;
      }
      this.#enter(hold);
    }
  }

  released(hold: HoldRecord, answer: boolean): void {
    const before = this.#released.get(hold.id);
    if (before?.isMarked && hold.unanswered && this.#wasReleased(hold)) {
      expect(answer, before.answer, `the answer to the first release of ${hold.id}`);
      return;
    }
    this.look();
    expect(answer, this.#has(hold), `whether ${hold.id} was still in at its release`);
    // One without a mark that comes late leaves the mark as it is.
    if (hold.unanswered || !before?.isMarked || !this.#wasReleased(hold)) {
      this.#released.set(hold.id, { answer, until: this.#clock.monotonic() + DONE_MS, isMarked: hold.unanswered });
    }
    if (answer && this.#holds.delete(hold.id) && this.#holds.size === 0) {
      this.#owner = undefined;
    }
  }

  /** An operator took the lock away. */
  forced(): void {
    this.#owner = undefined;
  }

  /** The store lost its memory; fences rise all the same. */
  forgotten(): void {
    this.#owner = undefined;
    this.#released.clear();
  }

  #enter(hold: HoldRecord): void {
    this.#holds.set(hold.id, hold);
    this.#ttlMs = Math.max(this.#ttlMs, hold.ttlMs);
    this.#endsAt = Math.max(this.#endsAt, this.#clock.monotonic() + hold.ttlMs);
  }

  #has(hold: HoldRecord): boolean {
    return !this.isFree && this.#owner === hold.owner && this.#holds.has(hold.id);
  }

  #wasReleased(hold: HoldRecord): boolean {
    return (this.#released.get(hold.id)?.until ?? 0) > this.#clock.monotonic();
  }
}

function expect<T>(actual: T, expected: T, what: string): void {
  if (actual !== expected) {
    throw new Error(`The store answered ${String(actual)}, and not ${String(expected)}: ${what}.`);
  }
}
