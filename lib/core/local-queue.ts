import type { LockStoreError } from './errors.js';
import type { Hold } from './hold.js';
import type { Waiter } from './waiter.js';

/** A key that somebody in this process contends for or holds: who has it, and who waits behind, first come first. */
export class Line {
  /** The hold that has the lock; undefined while its caller is still trying. */
  hold: Hold | undefined;
  /** Why the store last failed the caller whose turn it is; undefined once it has answered. */
  failure: LockStoreError | undefined;
  readonly waiting = new Set<Waiter>();
}

/** One contender per key in this process, so that a store sees one caller of a key at a time. */
export class LocalQueue {
  readonly #lines = new Map<string, Line>();

  /** The line of a key that is taken; undefined where nobody here wants the key. */
  lineOf(key: string): Line | undefined {
    return this.#lines.get(key);
  }

  /** Takes the turn for a key that nobody here wants. */
  open(key: string): void {
    this.#lines.set(key, new Line());
  }

  /** The caller whose turn it is has the lock. */
  granted(hold: Hold): void {
    const line = this.#lines.get(hold.key);
    if (line) {
      line.hold = hold;
    }
  }

  /** What the store said to the caller whose turn it is: those behind it would be told the same. */
  answered(key: string, failure: LockStoreError | undefined): void {
    const line = this.#lines.get(key);
    if (line) {
      line.failure = failure;
    }
  }

  /** Ends a turn: the next in line is admitted and has it. */
  pass(key: string): void {
    const line = this.#lines.get(key);
    const [next] = line?.waiting ?? [];
    if (next) {
      (line as Line).hold = undefined;
      next.admit();
    } else {
      this.#lines.delete(key);
    }
  }
}
