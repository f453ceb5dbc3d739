import type { Clock } from '../../core/clock.js';
import type { Busy, HoldRecord } from '../../core/lock-store.js';
import { CLAIM_MS, QUEUE_MS } from './protocol.js';

/** A process in the queue of a key. */
export interface QueuedPlace {
  /** Unique: a process that gives one up and queues anew has another. */
  readonly name: string;
  readonly process: string;
  /** Whether it looks for its turn by itself: that nobody hears a message then says nothing of the process. */
  readonly polls: boolean;
}

/** The lock of one owner. */
export interface Grant {
  readonly owner: string;
  readonly fence: number;
  readonly since: number;
  readonly by: string;
  /** Hold → process. */
  readonly holds: Map<string, string>;
  /** The longest lease asked for. */
  ttlMs: number;
  endsAt: number;
}

/** A free lock that waits to be claimed. */
interface Reservation {
  readonly place: QueuedPlace;
  endsAt: number;
}

/** What is stored of one key: a grant or a reservation, and the queue, first come first. */
export class KeyState {
  grant: Grant | undefined;
  turn: Reservation | undefined;
  readonly queue = new Map<string, QueuedPlace>();
  #queueEndsAt = Infinity;
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Forgets what has run out; whether anything is left. */
  tidy(): boolean {
    const now = this.#clock.monotonic();
    if (this.grant && this.grant.endsAt <= now) {
      this.grant = undefined;
    }
    if (this.turn && this.turn.endsAt <= now) {
      this.turn = undefined;
    }
    if (this.#queueEndsAt <= now) {
      this.queue.clear();
    }
    return this.grant !== undefined || this.turn !== undefined || this.queue.size > 0;
  }

  get first(): QueuedPlace | undefined {
    const [first] = this.queue.values();
    return first;
  }

  /** Takes the first off the queue and reserves the lock for it: an expired reservation is never renewed. */
  reserve(place: QueuedPlace): void {
    this.queue.delete(place.name);
    this.turn = { place, endsAt: this.#clock.monotonic() + CLAIM_MS };
  }

  /** Queues, or keeps the place that it has; whether it is new there. */
  enqueue(place: QueuedPlace): boolean {
    const joined = !this.queue.has(place.name);
    this.queue.set(place.name, place);
    this.#queueEndsAt = this.#clock.monotonic() + QUEUE_MS;
    return joined;
  }

  rankOf(name: string): number {
    return [...this.queue.keys()].indexOf(name);
  }

  /** Whether this very hold of this grant is in. */
  holds(hold: HoldRecord): boolean {
    return this.grant?.owner === hold.owner && this.grant.holds.has(hold.id);
  }

  /** A lease is never shortened. */
  lengthen(grant: Grant, ttlMs: number, expires: boolean): void {
    grant.endsAt = Math.max(grant.endsAt, expires ? this.#clock.monotonic() + ttlMs : Infinity);
    grant.ttlMs = Math.max(grant.ttlMs, ttlMs);
  }

  /** Who is in the way. More time left than was ever asked for means that the clock was set back: it is cut. */
  busy(): Busy {
    const now = this.#clock.monotonic();
    const { grant, turn } = this;
    if (grant) {
      grant.endsAt = grant.endsAt === Infinity ? Infinity : Math.min(grant.endsAt, now + grant.ttlMs);
      return { remainingMs: grant.endsAt - now, holder: { by: grant.by, heldMs: this.#clock.wall() - grant.since } };
    }
    if (turn) {
      turn.endsAt = Math.min(turn.endsAt, now + CLAIM_MS);
    }
    return { remainingMs: turn ? turn.endsAt - now : CLAIM_MS, holder: { by: turn?.place.process ?? '', heldMs: 0 } };
  }
}
