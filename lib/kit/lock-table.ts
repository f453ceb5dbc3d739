import type { Clock } from '../core/seam/time.js';
import type { FoundLock, HoldRecord, StoredLock } from '../core/seam/lock-store.js';
import { MOST_FENCE, MOST_HOLDS, MOST_SKIPPED } from './protocol.js';
import { fenceTooHigh } from './refusals.js';
import type { SharedHolds } from './shared-holds.js';
import { DoneMarks } from './done-marks.js';
import { KeyState, type QueuedPlace } from './key-state.js';
import { sharesOfPlace, type KeyKind } from '../core/seam/shares.js';
import type { AttemptReply } from './replies.js';

/** Where the messages of a lock table go. */
export interface TableMessages {
  /** Notifies a process of its turn; answers how many received the message. */
  turn(place: QueuedPlace, key: string): number;
  forced(process: string, key: string, fence: number): void;
}

/**
 * The answer to an acquire; `late` where it came too late. `otherKind`: the kind of the key, where the hold needs the
 * other.
 */
export type TableReply = AttemptReply & { readonly late?: true; readonly otherKind?: KeyKind };

/** The answer to a join; `full`: the lock has as many holds as it may. */
export type JoinReply = 'joined' | 'ended' | 'full' | 'late';

/** Up to how many keys of which nothing is left are kept: one that is locked again needs no new state. */
const FEW_KEYS = 256;

/** The answer to an attempt that comes later than its sender waits for it: the lock is free, and is not granted. */
const LATE = { remainingMs: 0, holder: { by: '', heldMs: 0 }, rank: -1, joined: false, late: true } as const;

/**
 * The specification of the protocol, executable: the locks of one server as a state machine in memory. Tests compare
 * the Lua scripts and the SQL functions with it, operation by operation; the memory store keeps its locks in such a
 * table. `latest` is the latest time, in ms since 1970, at which a command may be carried out, or 0.
 */
export class LockTable {
  readonly #clock: Clock;
  readonly #messages: TableMessages;
  readonly #expires: boolean;
  /** The states by key. Keys of which nothing is left stay until there are `#mostKeys`. */
  #keys = new Map<string, KeyState>();
  #mostKeys = FEW_KEYS;
  readonly #done: DoneMarks;
  #fence = 0;

  constructor(clock: Clock, messages: TableMessages, expires = true) {
    this.#clock = clock;
    this.#messages = messages;
    this.#expires = expires;
    this.#done = new DoneMarks(clock);
  }

  /**
   * Grants a key that has room and is not reserved for another place, or confirms the grant to a hold that is in;
   * otherwise queues at `place`.
   */
  acquire(hold: HoldRecord, process: string, place?: QueuedPlace, latest = 0): TableReply {
    if (this.#done.get(hold.id) !== undefined) {
      return { remainingMs: 0, holder: { by: '', heldMs: 0 }, rank: -1, joined: false };
    }
    return this.#acquire(this.#open(hold.key), hold, process, place, false, latest);
  }

  /** Adds a hold to a running lock; never creates one. */
  join(hold: HoldRecord, process: string, latest = 0): JoinReply {
    const state = this.#stateOf(hold.key);
    if (hold.shares !== undefined) {
      return this.#joinShared(state, hold, process, latest);
    }
    const grant = state?.grant;
    if (!state || grant?.owner !== hold.owner || grant.fence !== hold.fence || this.#done.get(hold.id) !== undefined) {
      return 'ended';
    }
    if (!grant.holds.has(hold.id) && grant.holds.size >= MOST_HOLDS) {
      return 'full';
    }
    if (!grant.holds.has(hold.id) && this.#isLate(latest)) {
      return 'late';
    }
    state.addHold(hold.id, process);
    state.lengthen(hold.ttlMs);
    return 'joined';
  }

  /** Adds a hold beside one of the same owner; never creates one. */
  #joinShared(state: KeyState | undefined, hold: HoldRecord, process: string, latest: number): JoinReply {
    if (!state?.shared?.isOf(hold) || this.#done.get(hold.id) !== undefined) {
      return 'ended';
    }
    if (state.holds(hold)) {
      state.shared.lengthen(hold);
      return 'joined';
    }
    if (state.shared.holds.size >= MOST_HOLDS) {
      return 'full';
    }
    if (this.#isLate(latest)) {
      return 'late';
    }
    state.grantTo(hold, hold.fence, this.#clock.wall(), process, undefined);
    return 'joined';
  }

  /**
   * Lengthens a lease; never creates a lock. Shortens a lease only for a hold that lingers, where no others have the
   * same lease.
   */
  renew(hold: HoldRecord): boolean {
    const state = this.#stateOf(hold.key);
    if (hold.shares !== undefined) {
      const isIn = state?.shared?.fence === hold.fence && state.holds(hold);
      if (isIn) {
        state.shared?.lengthen(hold);
      }
      return isIn;
    }
    if (!state?.grant || !state.holds(hold) || state.grant.fence !== hold.fence) {
      return false;
    }
    if (hold.lingering && state.grant.holds.size === 1) {
      state.endAt(0);
    }
    state.lengthen(hold.ttlMs);
    state.runs(hold.by);
    return true;
  }

  /** Takes the hold out; the last one hands the lock over. */
  release(hold: HoldRecord): boolean {
    const { answer, last } = this.#release(hold);
    if (last) {
      this.#handOver(hold.key);
    }
    return answer;
  }

  /**
   * Releases, and acquires for the next caller of the same process: before the processes in the queue, where it
   * `mayOvertake`.
   */
  exchange(
    hold: HoldRecord,
    next: HoldRecord,
    process: string,
    place: QueuedPlace,
    mayOvertake: boolean,
    latest = 0,
  ): { released: boolean; reply: TableReply } {
    const { answer, last } = this.#release(hold);
    // A command that comes late must not give the lock to a hold that has ended, or whose caller waits no longer.
    const mayGrant = last && mayOvertake && this.#done.get(next.id) === undefined;
    if (mayGrant && !this.#isLate(latest)) {
      return { released: answer, reply: this.#acquire(this.#open(next.key), next, process, place, true, latest) };
    }
    if (last) {
      this.#handOver(hold.key);
    }
    return { released: answer, reply: mayGrant ? LATE : this.acquire(next, process, place, latest) };
  }

  /** Gives up a place or the turn it came to, and no later one. */
  leave(key: string, name: string): void {
    const state = this.#stateOf(key);
    // A writer that waits no longer keeps nobody out of a key that others share.
    if (state && (state.dequeue(name) ? state.shared !== undefined : state.unreserve(name))) {
      this.#handOver(key);
    }
  }

  inspect(key: string): StoredLock | null {
    const state = this.#stateOf(key);
    if (state?.shared && state.shared.holds.size > 0) {
      return this.#inspectShared(state, state.shared);
    }
    if (!state?.grant) {
      return null;
    }
    const { fence, holds, by, since, endsAt } = state.grant;
    const waiters = [...state.queue.values()].map((place) => place.process);
    const processes = [...new Set(holds.values())];
    return { fence, holds: holds.size, remainingMs: endsAt - this.#clock.monotonic(), since: new Date(since), by, waiters, processes };
  }

  #inspectShared({ queue }: KeyState, shared: SharedHolds): StoredLock {
    const { fence, shares } = shared;
    const holds = [...shared.holds.values()];
    const { by = '', since = 0 } = holds[0] ?? {};
    const waiters = [...queue.values()].map((place) => place.process);
    const processes = [...new Set(holds.map(({ process }) => process))];
    const remainingMs = Math.max(...holds.map(({ endsAt }) => endsAt)) - this.#clock.monotonic();
    return { fence, holds: holds.length, shares, remainingMs, since: new Date(since), by, waiters, processes };
  }

  /** The locks that are held, of keys that begin with `prefix`. */
  search(prefix: string): FoundLock[] {
    return [...this.#keys.keys()].flatMap((key) => {
      const stored = key.startsWith(prefix) ? this.inspect(key) : null;
      return stored ? [{ ...stored, key }] : [];
    });
  }

  forceRelease(key: string, fence: number): boolean {
    const state = this.#stateOf(key);
    const processes = state && new Set(state.grant ? state.grant.holds.values() : processesOf(state.shared));
    if (!state || !processes?.size || (state.grant ?? state.shared)?.fence !== fence) {
      return false;
    }
    state.free();
    this.#handOver(key);
    for (const process of processes) {
      this.#messages.forced(process, key, fence);
    }
    return true;
  }

  clear(): void {
    this.#keys.clear();
    this.#done.clear();
  }

  #acquire(
    state: KeyState,
    hold: HoldRecord,
    process: string,
    place: QueuedPlace | undefined,
    overtakes: boolean,
    latest: number,
  ): TableReply {
    if ((state.grant ?? hold.shares) !== undefined && state.holds(hold)) {
      return { fence: state.confirm(hold) };
    }
    const otherKind = state.kindOtherThan(hold.shares);
    if (otherKind) {
      return { ...state.busy(hold.shares), rank: -1, joined: false, otherKind };
    }
    if (!state.grant && (overtakes || this.#isTurnOf(place, state, hold))) {
      if (this.#isLate(latest)) {
        return LATE;
      }
      return this.#grant(state, hold, process, place);
    }
    state.cut();
    const joined = place !== undefined && state.enqueue(place);
    return { ...state.busy(hold.shares), rank: place ? state.rankOf(place.name) : -1, joined };
  }

  /** Whether a command comes later than its sender waits for it. */
  #isLate(latest: number): boolean {
    return latest > 0 && this.#clock.wall() > latest;
  }

  /**
   * Whether there is room for this place: reserved for it, or where nobody is before it in the queue. Those who are get
   * what room there is.
   */
  #isTurnOf(place: QueuedPlace | undefined, state: KeyState, { key, shares }: HoldRecord): boolean {
    if (state.first && state.first.name !== place?.name && !this.#handOver(key, place?.name)) {
      return false;
    }
    const isNext = state.first === undefined || state.first.name === place?.name;
    return (isNext && state.hasRoomFor(shares)) || (place !== undefined && state.isReservedFor(place.name));
  }

  #grant(state: KeyState, hold: HoldRecord, process: string, place: QueuedPlace | undefined): TableReply {
    const since = this.#clock.wall();
    if (hold.shares !== undefined && state.shared && state.shared.holds.size > 0) {
      const { fence } = state.shared;
      state.grantTo(hold, fence, since, process, place);
      return { fence };
    }
    const fence = Math.max(this.#fence + 1, Math.floor(since * 1000));
    // Beyond the highest, a sum would be rounded to it.
    if (fence > MOST_FENCE - (hold.fences - 1)) {
      throw fenceTooHigh(hold.key, String(this.#fence), 'start the process again');
    }
    this.#fence = fence + hold.fences - 1;
    state.grantTo(hold, fence, since, process, place);
    return { fence };
  }

  /**
   * The answer to a hold's release, the first one where a mark has it, and whether this run of it took the last hold
   * of a lease out.
   */
  #release(hold: HoldRecord): { answer: boolean; last: boolean } {
    const first = hold.unanswered ? this.#done.get(hold.id) : undefined;
    if (first !== undefined) {
      return { answer: first, last: false };
    }
    const state = this.#stateOf(hold.key);
    const answer = state?.removeHold(hold) === true;
    const last = answer && (hold.shares !== undefined || state.grant?.holds.size === 0);
    if (last && hold.shares === undefined) {
      state.free();
    }
    if (hold.unanswered) {
      this.#done.set(hold.id, answer);
    }
    return { answer, last };
  }

  /**
   * Reserves the room that there is for the first in the queue, one after the other, and notifies them; false where too
   * many processes were gone. A process that polls is not gone because it received no message, nor is the process that
   * asks, from the place `mine`.
   */
  #handOver(key: string, mine?: string): boolean {
    const state = this.#keys.get(key);
    for (let skipped = 0; skipped < MOST_SKIPPED;) {
      const first = state?.first;
      if (!state || !first || !state.hasRoomFor(sharesOfPlace(first.name))) {
        return true;
      }
      state.reserve(first);
      if (this.#messages.turn(first, key) === 0 && !first.polls && first.name !== mine) {
        state.unreserve(first.name);
        skipped++;
      }
    }
    return false;
  }

  /** The state of a key; undefined where nothing is left of it. */
  #stateOf(key: string): KeyState | undefined {
    const state = this.#keys.get(key);
    return state?.tidy() ? state : undefined;
  }

  #open(key: string): KeyState {
    const existing = this.#keys.get(key);
    if (existing) {
      existing.tidy();
      return existing;
    }
    if (this.#keys.size >= this.#mostKeys) {
      this.#forget();
    }
    const state = new KeyState(this.#clock, this.#expires);
    this.#keys.set(key, state);
    return state;
  }

  /**
   * Forgets the keys of which nothing is left, all at once. If each key is deleted by itself, a `Map` leaves a chain of
   * former tables behind: once the first of them is old, the garbage collector keeps all objects that were in any of
   * them.
   */
  #forget(): void {
    this.#keys = new Map([...this.#keys].filter(([, state]) => state.tidy()));
    this.#mostKeys = Math.max(FEW_KEYS, 2 * this.#keys.size);
  }
}

function processesOf(shared: SharedHolds | undefined): string[] {
  return [...(shared?.holds.values() ?? [])].map(({ process }) => process);
}
