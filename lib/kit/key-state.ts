import type { Clock } from '../core/seam/time.js';
import type { Busy, HoldRecord } from '../core/seam/lock-store.js';
import { CLAIM_MS, QUEUE_MS } from './protocol.js';

/** A process in the queue of a key. */
export interface QueuedPlace {
  /** Unique: a process that gives one up and queues anew has another. */
  readonly name: string;
  readonly process: string;
  /** Whether it polls: then it is not gone because it receives no message. */
  readonly polls: boolean;
}

/** The lock of one owner. */
export interface Grant {
  readonly owner: string;
  readonly fence: number;
  readonly since: number;
  readonly by: string;
  /** Hold → process. */
  readonly holds: ReadonlyMap<string, string>;
  /** The longest lease asked for. */
  readonly ttlMs: number;
  readonly endsAt: number;
}

/** A free lock that is reserved for a place. */
interface Reservation {
  readonly place: QueuedPlace;
  readonly endsAt: number;
}

/** The stored state of one key: a grant or a reservation, and the queue in order. Only this file changes it. */
export class KeyState {
  readonly #clock: Clock;
  readonly #expires: boolean;
  readonly #queue = new Map<string, QueuedPlace>();
  #grant: (Grant & { readonly holds: Map<string, string> }) | undefined;
  #turn: Reservation | undefined;
  #queueEndsAt = Infinity;

  /** Leases that do not expire end with their last hold only. */
  constructor(clock: Clock, expires = true) {
    this.#clock = clock;
    this.#expires = expires;
  }

  get grant(): Grant | undefined {
    return this.#grant;
  }

  get turn(): Reservation | undefined {
    return this.#turn;
  }

  get queue(): ReadonlyMap<string, QueuedPlace> {
    return this.#queue;
  }

  get first(): QueuedPlace | undefined {
    return this.#queue.size > 0 ? this.#queue.values().next().value : undefined;
  }

  /** Forgets expired grants, reservations and queues. Answers whether anything is left. */
  tidy(): boolean {
    const now = this.#clock.monotonic();
    if (this.#grant && this.#grant.endsAt <= now) {
      this.free();
    }
    if (this.#turn && this.#turn.endsAt <= now) {
      this.#turn = undefined;
    }
    if (this.#queueEndsAt <= now) {
      this.#queue.clear();
    }
    return this.#grant !== undefined || this.#turn !== undefined || this.#queue.size > 0;
  }

  /** Grants the free lock to the owner of a hold. Its reservation is claimed, and its place leaves the queue. */
  grantTo({ owner, id, by, ttlMs }: HoldRecord, fence: number, since: number, process: string, place: QueuedPlace | undefined): void {
    const endsAt = this.#expires ? this.#clock.monotonic() + ttlMs : Infinity;
    this.#grant = { owner, fence, since, by, holds: new Map([[id, process]]), ttlMs, endsAt };
    this.#turn = undefined;
    if (place) {
      this.#queue.delete(place.name);
    }
  }

  /** Whether this very hold of this owner is in. */
  holds(hold: HoldRecord): boolean {
    return this.#grant?.owner === hold.owner && this.#grant.holds.has(hold.id);
  }

  addHold(id: string, process: string): void {
    this.#grant?.holds.set(id, process);
  }

  /** Whether the hold was in. */
  removeHold(id: string): boolean {
    return this.#grant?.holds.delete(id) === true;
  }

  /** The lease ends `ttlMs` from now, or later. */
  lengthen(ttlMs: number): void {
    if (this.#grant) {
      const endsAt = this.#expires ? this.#clock.monotonic() + ttlMs : Infinity;
      this.#grant = { ...this.#grant, endsAt: Math.max(this.#grant.endsAt, endsAt), ttlMs: Math.max(this.#grant.ttlMs, ttlMs) };
    }
  }

  /** Who runs in the lock now; '' says nothing. */
  runs(by: string): void {
    if (this.#grant && by !== '') {
      this.#grant = { ...this.#grant, by };
    }
  }

  /** Sets the end of the lease, which may be sooner: for a hold that lingers alone, or after the clock was set back. */
  endAt(endsAt: number): void {
    if (this.#grant) {
      this.#grant = { ...this.#grant, endsAt };
    }
  }

  free(): void {
    this.#grant = undefined;
  }

  /** Takes a place off the queue and reserves the lock for it: an expired reservation is never renewed. */
  reserve(place: QueuedPlace): void {
    this.#queue.delete(place.name);
    this.#turn = { place, endsAt: this.#clock.monotonic() + CLAIM_MS };
  }

  unreserve(): void {
    this.#turn = undefined;
  }

  /** Queues a place, or refreshes the one that is there; whether it is new there. */
  enqueue(place: QueuedPlace): boolean {
    const joined = !this.#queue.has(place.name);
    this.#queue.set(place.name, place);
    this.#queueEndsAt = this.#clock.monotonic() + QUEUE_MS;
    return joined;
  }

  /** Whether the place was in the queue. */
  dequeue(name: string): boolean {
    return this.#queue.delete(name);
  }

  rankOf(name: string): number {
    return [...this.#queue.keys()].indexOf(name);
  }

  /** Cuts the time left to the longest asked for: more of it means that the clock was set back. */
  cut(): void {
    const now = this.#clock.monotonic();
    if (this.#grant && this.#grant.endsAt !== Infinity) {
      this.endAt(Math.min(this.#grant.endsAt, now + this.#grant.ttlMs));
    }
    if (this.#turn) {
      this.#turn = { place: this.#turn.place, endsAt: Math.min(this.#turn.endsAt, now + CLAIM_MS) };
    }
  }

  /** Who holds the lock, or has it reserved. */
  busy(): Busy {
    const now = this.#clock.monotonic();
    if (this.#grant) {
      const { by, since, endsAt } = this.#grant;
      return { remainingMs: endsAt - now, holder: { by, heldMs: this.#clock.wall() - since } };
    }
    const remainingMs = this.#turn ? this.#turn.endsAt - now : CLAIM_MS;
    return { remainingMs, holder: { by: this.#turn?.place.process ?? '', heldMs: 0 } };
  }
}
