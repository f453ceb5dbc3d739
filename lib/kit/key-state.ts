import type { Clock } from '../core/seam/time.js';
import type { Busy, HoldRecord, Shares } from '../core/seam/lock-store.js';
import { CLAIM_MS, QUEUE_MS } from './protocol.js';
import { SharedHolds } from './shared-holds.js';
import { kindOfKey, sharesOfPlace, type KeyKind } from '../core/seam/shares.js';

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

/**
 * The stored state of one key: a grant, a reservation or holds that share the key, and the queue in order. Only this
 * file changes it.
 */
export class KeyState {
  readonly #clock: Clock;
  readonly #expires: boolean;
  readonly #queue = new Map<string, QueuedPlace>();
  #grant: (Grant & { readonly holds: Map<string, string> }) | undefined;
  #turn: Reservation | undefined;
  /** Undefined where nobody shares the key, and no room is reserved. */
  #shared: SharedHolds | undefined;
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

  get shared(): SharedHolds | undefined {
    return this.#shared;
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
    if (this.#shared) {
      this.#shared.tidy();
      this.#forgetShared();
    }
    if (this.#queueEndsAt <= now) {
      this.#queue.clear();
    }
    return this.#grant !== undefined || this.#turn !== undefined || this.#shared !== undefined || this.#queue.size > 0;
  }

  /** The kind of the key, where somebody is in and a hold that so shares it needs the other kind. */
  kindOtherThan(shares: Shares | undefined): KeyKind | undefined {
    const kind = this.#grant ? 'lock' : this.#shared?.kind;
    return kind === undefined || kind === kindOfKey(shares) ? undefined : kind;
  }

  /** Whether there is room for one more hold that so shares the key. What is reserved for others is taken. */
  hasRoomFor(shares: Shares | undefined): boolean {
    if (this.#grant ?? this.#turn) {
      return false;
    }
    return this.#shared === undefined || (shares !== undefined && this.#shared.hasRoomFor(shares));
  }

  /** Grants the key to the owner of a hold. Its reservation is claimed, and its place leaves the queue. */
  grantTo(hold: HoldRecord, fence: number, since: number, process: string, place: QueuedPlace | undefined): void {
    const { owner, id, by, ttlMs, shares } = hold;
    if (shares !== undefined) {
      this.#shared ??= new SharedHolds(this.#clock, this.#expires);
      this.#shared.add(hold, shares, fence, since, process, place);
      this.dequeue(place?.name ?? '');
      return;
    }
    const endsAt = this.#expires ? this.#clock.monotonic() + ttlMs : Infinity;
    this.#grant = { owner, fence, since, by, holds: new Map([[id, process]]), ttlMs, endsAt };
    this.#turn = undefined;
    if (place) {
      this.#queue.delete(place.name);
    }
  }

  /** Whether this very hold of this owner is in. */
  holds(hold: HoldRecord): boolean {
    return hold.shares === undefined
      ? this.#grant?.owner === hold.owner && this.#grant.holds.has(hold.id)
      : this.#shared?.has(hold) === true;
  }

  /** Lengthens the lease of a hold that is in, and answers its fence. */
  confirm(hold: HoldRecord): number {
    if (hold.shares === undefined) {
      this.lengthen(hold.ttlMs);
      return this.#grant?.fence ?? 0;
    }
    this.#shared?.lengthen(hold);
    return this.#shared?.fence ?? 0;
  }

  addHold(id: string, process: string): void {
    this.#grant?.holds.set(id, process);
  }

  /** Whether the hold was in. */
  removeHold(hold: HoldRecord): boolean {
    if (hold.shares !== undefined) {
      const was = this.#shared?.remove(hold) === true;
      this.#forgetShared();
      return was;
    }
    return this.#grant?.owner === hold.owner && this.#grant.holds.delete(hold.id);
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

  /** Takes all holds out. What is reserved stays. */
  free(): void {
    this.#grant = undefined;
    this.#shared?.free();
    this.#forgetShared();
  }

  /** Whether the key, or room in it, is reserved for the place. */
  isReservedFor(name: string): boolean {
    return this.#turn?.place.name === name || this.#shared?.isReservedFor(name) === true;
  }

  /** Takes a place off the queue and reserves the lock for it: an expired reservation is never renewed. */
  reserve(place: QueuedPlace): void {
    this.#queue.delete(place.name);
    if (sharesOfPlace(place.name) !== undefined) {
      this.#shared ??= new SharedHolds(this.#clock, this.#expires);
      this.#shared.reserve(place);
      return;
    }
    this.#turn = { place, endsAt: this.#clock.monotonic() + CLAIM_MS };
  }

  /** Whether the key, or room in it, was reserved for the place. */
  unreserve(name: string): boolean {
    if (this.#turn?.place.name === name) {
      this.#turn = undefined;
      return true;
    }
    const was = this.#shared?.unreserve(name) === true;
    this.#forgetShared();
    return was;
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
    this.#shared?.cut();
  }

  /** Who holds the key, or has it reserved, for one that would so share it: a permit needs one of them to leave. */
  busy(shares: Shares | undefined): Busy {
    const now = this.#clock.monotonic();
    if (this.#shared) {
      const [first] = this.#shared.holds.values();
      const remainingMs = this.#shared.endsAt(typeof shares === 'number' ? 'first' : 'last') - now;
      const holder = { by: first?.by ?? '', heldMs: first ? this.#clock.wall() - first.since : 0 };
      return { remainingMs, holder, permits: typeof first?.shares === 'number' ? first.shares : undefined };
    }
    if (this.#grant) {
      const { by, since, endsAt } = this.#grant;
      return { remainingMs: endsAt - now, holder: { by, heldMs: this.#clock.wall() - since } };
    }
    const remainingMs = this.#turn ? this.#turn.endsAt - now : CLAIM_MS;
    return { remainingMs, holder: { by: this.#turn?.place.process ?? '', heldMs: 0 } };
  }

  /** A key of which nobody shares anything is free, also for a writer. */
  #forgetShared(): void {
    if (this.#shared?.isEmpty === true) {
      this.#shared = undefined;
    }
  }
}
