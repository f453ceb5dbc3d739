import { randomUUID } from 'node:crypto';
import { exchange, type AttemptResult } from './attempt.js';
import type { BackgroundReleases } from './background-releases.js';
import type { Clock } from '../seam/time.js';
import { Line, type NextCaller } from './line.js';
import type { Lease } from './lease.js';
import { placeEnd } from '../seam/shares.js';
import type { CallOptions, Shares } from '../words/call-options.js';
import type { HoldRecord, LockStore, Place, TurnListener } from '../seam/lock-store.js';

/**
 * For how long callers of one process may have a lock one after the other, in milliseconds: in a store that knows which
 * processes wait, and in one that does not. Beside sections as long as that, a command costs nothing.
 */
const BURST_MS = 100;
const SLICE_MS = 50;
/** How many keys are remembered at least. */
const FEW_KEYS = 256;

/**
 * One line per key that calls of this process want, so that the store sees one contender of each key; and the places of
 * this process.
 */
export class Lines implements TurnListener {
  readonly #store: LockStore;
  readonly #clock: Clock;
  readonly #releases: BackgroundReleases;
  /** By key; undefined for one that no call here wants any more. */
  #lines = new Map<string, Line | undefined>();
  #mostKeys = FEW_KEYS;
  /** By key: the reader of this process that came in last; undefined where that one has ended. */
  #readers = new Map<string, Lease | undefined>();
  #mostReaders = FEW_KEYS;
  /** The prefix of the names of its places: several applications may share one store in memory. */
  readonly #id = randomUUID().slice(0, 8);
  #places = 0;
  #isHeldBack = false;

  constructor(store: LockStore, clock: Clock, releases: BackgroundReleases, closed: AbortSignal) {
    this.#store = store;
    this.#clock = clock;
    this.#releases = releases;
    store.turns?.onTurn(this, closed);
  }

  /** The line of a key; undefined where no call here wants the key. */
  lineOf(key: string): Line | undefined {
    return this.#lines.get(key);
  }

  /**
   * Whether a call may ask for a key at once: no other call here wants it, or those that do may share it; and the last
   * attempt did not fail.
   */
  mayGoStraight(key: string, call: CallOptions): boolean {
    if (this.#isHeldBack) {
      return false;
    }
    const line = this.#lines.get(key);
    return line === undefined || (call.shares !== undefined && line.mayAskBeside(call.shares, call.waitMs > 0));
  }

  /** Whether the store knows which processes wait. */
  get keepQueues(): boolean {
    return this.#store.turns !== undefined;
  }

  /** Whether a call here waits to enter the lease, or for its key. */
  isWantedHere({ key, calls }: Lease): boolean {
    return calls.waiting > 0 || (this.#lines.get(key)?.waiting ?? 0) > 0;
  }

  /** The lines in which calls wait for another call of this process. */
  get contended(): readonly Line[] {
    return this.#all.filter((line) => line.waiting > 0);
  }

  /** Begins the line of a key, for its contender; undefined where the key has one, beside which the call asks. */
  openUnlessTaken(key: string): Line | undefined {
    const taken = this.#lines.get(key);
    taken?.asksBeside();
    return taken ? undefined : this.open(key);
  }

  /** Begins the line of a key that no call here wants, for its contender. */
  open(key: string): Line {
    if (this.#lines.size >= this.#mostKeys) {
      this.#forget();
    }
    const line = new Line(key);
    this.#lines.set(key, line);
    return line;
  }

  /**
   * A new place in the store's queue, whose name says how it wants the key; undefined where the store keeps none.
   */
  #newPlace(shares: Shares | undefined): Place | undefined {
    return this.#store.turns && { name: `${this.#id}${(this.#places++).toString(36)}${shares === undefined ? '' : placeEnd(shares)}` };
  }

  /** The grant of a reader of this process, which `next` enters beside it; undefined where there is none to enter. */
  besideReader(next: Lease): Extract<AttemptResult, { outcome: 'granted' }> | undefined {
    // A ticket is for the lock that it was made in, and for no later one.
    const reader = next.shares === 'read' && !next.isJoined && !next.isUnanswered ? this.#readers.get(next.key) : undefined;
    return reader?.canAdmit(next) ? { outcome: 'granted', ...reader.admit(next) } : undefined;
  }

  /**
   * The contender has `lease`, which shares its key, and so keeps no other call here from contending. `isNew` says
   * whether the store was asked for it.
   */
  shared(line: Line | undefined, lease: Lease, isNew: boolean): void {
    line?.heldBy(lease, isNew);
    if (lease.shares === 'read') {
      if (this.#readers.size >= this.#mostReaders) {
        this.#readers = withValue(this.#readers);
        this.#mostReaders = Math.max(FEW_KEYS, 2 * this.#readers.size);
      }
      this.#readers.set(lease.key, lease);
    }
    this.endTurn(line);
  }

  /** The lease of a reader has ended. */
  forget(lease: Lease): void {
    if (this.#readers.get(lease.key) === lease) {
      this.#readers.set(lease.key, undefined);
    }
  }

  /** Has a lease serve the next caller here too; false where it cannot. */
  serves(line: Line, lease: Lease, { waiter, lease: next }: NextCaller): boolean {
    const may = (lease.shares !== undefined || line.mayOvertake(next)) && lease.canServe(next) && this.#mayGoOn(lease);
    if (may) {
      line.admitServed(waiter, { outcome: 'granted', ...lease.serve(next) });
    }
    return may;
  }

  /**
   * Gives a lock to the next caller here, with its release in one command. Answers whether the lock was still held;
   * undefined where the store cannot, or the caller shares the key.
   */
  exchange(line: Line, next: NextCaller, lease: Lease, hold: HoldRecord): Promise<boolean> | undefined {
    const place = next.lease.shares === undefined ? this.#newPlace(undefined) : undefined;
    if (!place) {
      return undefined;
    }
    this.#askFor(next.lease, line.waiting - 1);
    const overtakes = line.mayOvertake(next.lease) && this.#mayGoOn(lease);
    if (overtakes) {
      next.lease.goesOnFor(lease);
    }
    const { released, attempt } = exchange(this.#store, hold, next.lease, place, overtakes, this.#clock);
    line.admitWith(next.waiter, place, attempt, overtakes);
    return released;
  }

  /** The contender or holder of a key is done: the next in line becomes the contender. */
  endTurn(line: Line | undefined): void {
    const next = line?.next();
    if (line && next) {
      line.admit(next.waiter);
    } else if (line) {
      this.#lines.set(line.key, undefined);
      if (line.place) {
        this.#releases.leave(line.key, line.place);
      }
    }
  }

  /**
   * Notes that the contender asks the store now; `attempt` sends the command. Answers the place where the contender may
   * queue: none for a call that does not wait, which takes no other process's turn, nor for one that has no line.
   */
  prepare(line: Line | undefined, lease: Lease, waits: boolean): Place | undefined {
    if (!line) {
      return undefined;
    }
    if (line.place && line.wantsOtherwise(lease)) {
      this.#releases.leave(line.key, line.place);
      line.leave();
    }
    const place = waits ? (line.place ?? this.#newPlace(lease.shares)) : undefined;
    line.asks(lease, place);
    this.#askFor(lease, line.waiting);
    return place;
  }

  /** Has an acquire ask for the fences of the callers behind it as well. */
  #askFor(lease: Lease, waitingHere: number): void {
    if (this.#store.reservesFences && lease.shares === undefined) {
      lease.askForBlock(waitingHere);
    }
  }

  turn(key: string, name: string): void {
    const line = this.#lines.get(key);
    if (line?.place?.name === name) {
      line.recheck();
    } else if (name.startsWith(this.#id)) {
      // No call here wants it any more, and other processes wait for it.
      this.#releases.leave(key, { name });
    }
  }

  /** The last attempt failed: the calls to come look first whether the store is away. */
  holdBack(): void {
    this.#isHeldBack = true;
  }

  /** The store answers again. */
  wake(): void {
    this.#isHeldBack = false;
    this.#all.forEach((line) => line.wake());
  }

  recheck(): void {
    for (const line of this.#all) {
      if (line.place) {
        line.recheck();
      }
    }
  }

  #forget(): void {
    this.#lines = withValue(this.#lines);
    this.#mostKeys = Math.max(FEW_KEYS, 2 * this.#lines.size);
  }

  get #all(): readonly Line[] {
    return [...this.#lines.values()].filter((line) => line !== undefined);
  }

  /** Whether the next caller here may have the lock before other processes, which may wait. */
  #mayGoOn({ turnSince }: Lease): boolean {
    return this.#clock.monotonic() - turnSince < (this.keepQueues ? BURST_MS : SLICE_MS);
  }
}

/**
 * The keys that have a value: the others are forgotten all at once, since a `Map` of which each key is deleted by
 * itself keeps the keys for long (`Link`).
 */
function withValue<Value>(map: ReadonlyMap<string, Value | undefined>): Map<string, Value | undefined> {
  return new Map([...map].filter(([, value]) => value));
}
