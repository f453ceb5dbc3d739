import { randomUUID } from 'node:crypto';
import { passOn } from './attempt.js';
import type { BackgroundReleases } from './background-releases.js';
import type { Clock } from './clock.js';
import type { Hold } from './hold.js';
import { Line } from './line.js';
import type { LockStore, Place, TurnListener } from './lock-store.js';

/** How many callers of one process may have a lock one after the other while other processes wait for it. */
const BURST = 16;

/**
 * One contender per key in this process, so that a store sees one caller of a key at a time; and this process's places in
 * the store's queues.
 */
export class LocalQueue implements TurnListener {
  readonly #store: LockStore;
  readonly #clock: Clock;
  readonly #releases: BackgroundReleases;
  readonly #lines = new Map<string, Line>();
  /** What the names of its places start with: several may share one store in memory. */
  readonly #id = randomUUID().slice(0, 8);
  #places = 0;

  constructor(store: LockStore, clock: Clock, releases: BackgroundReleases) {
    this.#store = store;
    this.#clock = clock;
    this.#releases = releases;
    store.turns?.onTurn(this);
  }

  /** The line of a key that is taken; undefined where nobody here wants the key. */
  lineOf(key: string): Line | undefined {
    return this.#lines.get(key);
  }

  /** The lines in which calls wait for another one of this process. */
  *contended(): Iterable<Line> {
    for (const line of this.#lines.values()) {
      if (line.waiting > 0) {
        yield line;
      }
    }
  }

  /** Takes the turn for a key that nobody here wants. */
  open(key: string): Line {
    const line = new Line();
    this.#lines.set(key, line);
    return line;
  }

  /** Where this process stands, or will stand, in the store's queue; undefined where the store has none. */
  placeIn(line: Line): Place | undefined {
    return this.#store.turns && (line.place ??= this.#newPlace());
  }

  /**
   * Gives a lock to the next caller here, with its release in one command. Answers whether the lock was still held;
   * undefined where nobody waits, or the store cannot.
   */
  handOn(hold: Hold): Promise<boolean> | undefined {
    const { turns } = this.#store;
    const line = this.#lines.get(hold.key);
    const next = turns && line?.next();
    if (!turns || !line || !next) {
      return undefined;
    }
    const mayOvertake = line.burst < BURST;
    line.burst++;
    line.place = this.#newPlace();
    line.busy = undefined;
    line.told = false;
    const { released, attempt } = passOn(turns, this.#store, hold, next.hold, line.place, mayOvertake, this.#clock);
    line.admit(next.waiter, attempt);
    return released;
  }

  /** Ends a turn: the next in line is admitted and has it. */
  pass(key: string): void {
    const line = this.#lines.get(key);
    const next = line?.next();
    if (line && next) {
      line.admit(next.waiter);
      return;
    }
    this.#lines.delete(key);
    if (line?.place) {
      this.#releases.leave(key, line.place);
    }
  }

  turn(key: string, name: string): void {
    const line = this.#lines.get(key);
    if (line?.place?.name === name) {
      line.look();
    } else if (name.startsWith(this.#id)) {
      // Nobody here wants it any more, and others wait for it.
      this.#releases.leave(key, { name });
    }
  }

  recheck(): void {
    for (const line of this.#lines.values()) {
      if (line.place) {
        line.look();
      }
    }
  }

  #newPlace(): Place {
    return { name: `${this.#id}${(this.#places++).toString(36)}` };
  }
}
