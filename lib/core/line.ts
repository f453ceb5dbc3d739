import type { AttemptResult } from './attempt.js';
import type { LockStoreError } from './errors.js';
import type { Hold } from './hold.js';
import type { Busy, Place } from './lock-store.js';
import type { Waiter, WaitingLine } from './waiter.js';

/**
 * A key that somebody in this process contends for or holds: who has it, who waits behind, first come first, and where the
 * process stands in the store's queue.
 */
export class Line implements WaitingLine {
  /** The hold that has the lock; undefined while its caller is still trying. */
  hold: Hold | undefined;
  /** Why the store last failed the caller whose turn it is; undefined once it has answered. */
  failure: LockStoreError | undefined;
  /** The process's place, from the first attempt that may queue to the grant. It outlives a caller that gives up. */
  place: Place | undefined;
  /** Whether there is reason to look for the turn at once, perhaps while an attempt is on its way. */
  told = false;
  /** What the store last said, and when it is to be asked again at the latest. */
  busy: Busy | undefined;
  recheckAt = 0;
  /** Callers of this process that had the lock one after the other. */
  burst = 0;
  /** The attempt that was sent for the next caller together with the release of the last one. */
  #passed: Promise<AttemptResult> | undefined;
  #paused: Waiter | undefined;
  #waiting: Map<Waiter, Hold> | undefined;

  get waiting(): number {
    return this.#waiting?.size ?? 0;
  }

  /** Where a caller waits until it is the contender, who will enter as `hold`. */
  behind(hold: Hold): WaitingLine {
    const waiting = (this.#waiting ??= new Map());
    return { add: (waiter) => waiting.set(waiter, hold), delete: (waiter) => waiting.delete(waiter) };
  }

  /** The line itself is where the contender waits between two attempts. */
  add(waiter: Waiter): void {
    this.#paused = waiter;
  }

  delete(): void {
    this.#paused = undefined;
  }

  /** Who has waited longest. */
  next(): { readonly waiter: Waiter; readonly hold: Hold } | undefined {
    for (const [waiter, hold] of this.#waiting ?? []) {
      return { waiter, hold };
    }
    return undefined;
  }

  /** Makes a waiter the contender, with an attempt that is on its way for it, or with none. */
  admit(waiter: Waiter, passed?: Promise<AttemptResult>): void {
    this.hold = undefined;
    this.#passed = passed;
    waiter.admit();
  }

  takePassed(): Promise<AttemptResult> | undefined {
    const passed = this.#passed;
    this.#passed = undefined;
    return passed;
  }

  /** The turn may have come: the contender tries now, or again once its attempt is answered. */
  look(): void {
    this.told = true;
    this.#paused?.admit();
  }

  /** What the store said last, and when to look again unless told before. */
  answered(busy: Busy | undefined, lookAt: number): void {
    this.busy = busy;
    this.recheckAt = lookAt;
  }

  /** The store answered an attempt with a grant; the place is used up, also where the grant cannot be taken. */
  granted(passed: boolean): void {
    this.place = undefined;
    this.busy = undefined;
    this.told = false;
    if (!passed) {
      this.burst = 1;
    }
  }
}
