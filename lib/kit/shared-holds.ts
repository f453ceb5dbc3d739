import type { Clock } from '../core/seam/time.js';
import type { HoldRecord, Shares } from '../core/seam/lock-store.js';
import type { QueuedPlace } from './key-state.js';
import { CLAIM_MS, MOST_HOLDS } from './protocol.js';
import { kindOfKey, sharesOfPlace, type KeyKind } from '../core/seam/shares.js';

/** A hold that shares its key with others; its lease is its own. */
export interface SharedHold {
  readonly owner: string;
  readonly process: string;
  readonly by: string;
  readonly shares: Shares;
  readonly since: number;
  /** The longest lease asked for. */
  readonly ttlMs: number;
  readonly endsAt: number;
}

/** Room that is reserved for a place. */
export interface Claim {
  readonly place: QueuedPlace;
  readonly endsAt: number;
}

/** The holds that share a key, and the places that have room reserved beside them. Only this file changes them. */
export class SharedHolds {
  readonly #clock: Clock;
  readonly #expires: boolean;
  readonly #holds = new Map<string, SharedHold>();
  /** By the name of the place. */
  readonly #claims = new Map<string, Claim>();
  #fence = 0;

  constructor(clock: Clock, expires: boolean) {
    this.#clock = clock;
    this.#expires = expires;
  }

  get holds(): ReadonlyMap<string, SharedHold> {
    return this.#holds;
  }

  get claims(): ReadonlyMap<string, Claim> {
    return this.#claims;
  }

  get isEmpty(): boolean {
    return this.#holds.size === 0 && this.#claims.size === 0;
  }

  /** The fence of those that are in. */
  get fence(): number {
    return this.#fence;
  }

  /** The kind of the key; undefined where nobody is in. */
  get kind(): KeyKind | undefined {
    return this.#holds.size > 0 ? kindOfKey(this.shares) : undefined;
  }

  /** With whom those that are in share the key: the smallest count of permits. Undefined where nobody is in. */
  get shares(): Shares | undefined {
    const [first, ...others] = [...this.#holds.values()].map(({ shares }) => shares);
    return typeof first === 'number' ? Math.min(first, ...others.map(Number)) : first;
  }

  /** Forgets what is over. */
  tidy(): void {
    const now = this.#clock.monotonic();
    for (const [id, { endsAt }] of this.#holds) {
      if (endsAt <= now) {
        this.#holds.delete(id);
      }
    }
    for (const [name, { endsAt }] of this.#claims) {
      if (endsAt <= now) {
        this.#claims.delete(name);
      }
    }
  }

  /** Whether there is room for one more. A reserved place counts as the hold that it will be. */
  hasRoomFor(shares: Shares): boolean {
    let most = shares === 'read' ? MOST_HOLDS : shares;
    for (const other of this.#all()) {
      if (kindOfKey(other) !== kindOfKey(shares)) {
        return false;
      }
      most = other === 'read' ? most : Math.min(most, other);
    }
    return this.#holds.size + this.#claims.size < most;
  }

  /** Lets a hold in, and uses up the reservation of its place. The first one brings the fence of all. */
  add({ id, owner, by, ttlMs }: HoldRecord, shares: Shares, fence: number, since: number, process: string, place?: QueuedPlace): void {
    if (place) {
      this.#claims.delete(place.name);
    }
    this.#fence = fence;
    this.#holds.set(id, { owner, process, by, shares, since, ttlMs, endsAt: this.#endOf(ttlMs) });
  }

  has({ id, owner }: HoldRecord): boolean {
    return this.#holds.get(id)?.owner === owner;
  }

  /** Whether a hold of that owner is in, so that others may enter by its ticket. */
  isOf({ owner, fence }: HoldRecord): boolean {
    return fence === this.#fence && [...this.#holds.values()].some((hold) => hold.owner === owner);
  }

  /**
   * Sets a lease to at least `ttlMs` from now; to exactly `ttlMs` for one that lingers. '' says nothing of the caller.
   */
  lengthen({ id, ttlMs, by, lingering }: HoldRecord): void {
    const hold = this.#holds.get(id);
    if (hold) {
      const endsAt = lingering ? this.#endOf(ttlMs) : Math.max(hold.endsAt, this.#endOf(ttlMs));
      this.#holds.set(id, { ...hold, by: by || hold.by, endsAt, ttlMs: Math.max(hold.ttlMs, ttlMs) });
    }
  }

  /** Whether the hold was in. */
  remove(hold: HoldRecord): boolean {
    return this.has(hold) && this.#holds.delete(hold.id);
  }

  /** Takes all holds out. Reserved places stay. */
  free(): void {
    this.#holds.clear();
  }

  reserve(place: QueuedPlace): void {
    this.#claims.set(place.name, { place, endsAt: this.#clock.monotonic() + CLAIM_MS });
  }

  isReservedFor(name: string): boolean {
    return this.#claims.has(name);
  }

  /** Whether room was reserved for the place. */
  unreserve(name: string): boolean {
    return this.#claims.delete(name);
  }

  /** Cuts the time left to the longest asked for: more of it means that the clock was set back. */
  cut(): void {
    const now = this.#clock.monotonic();
    for (const [id, hold] of this.#holds) {
      if (hold.endsAt !== Infinity) {
        this.#holds.set(id, { ...hold, endsAt: Math.min(hold.endsAt, now + hold.ttlMs) });
      }
    }
    for (const [name, { place, endsAt }] of this.#claims) {
      this.#claims.set(name, { place, endsAt: Math.min(endsAt, now + CLAIM_MS) });
    }
  }

  /** When the next of them leaves at the latest, or the last. */
  endsAt(which: 'first' | 'last'): number {
    const ends = [...this.#holds.values(), ...this.#claims.values()].map(({ endsAt }) => endsAt);
    return which === 'first' ? Math.min(...ends) : Math.max(...ends);
  }

  *#all(): Generator<Shares, void, undefined> {
    for (const { shares } of this.#holds.values()) {
      yield shares;
    }
    for (const name of this.#claims.keys()) {
      yield sharesOfPlace(name) as Shares;
    }
  }

  #endOf(ttlMs: number): number {
    return this.#expires ? this.#clock.monotonic() + ttlMs : Infinity;
  }
}
