import type { Clock } from '../../../lib/core/seam/time.js';

/** How often a clock is read in one instant of the world at most, where nobody waits without a pause. */
const MOST_READS = 10_000;

/**
 * The clocks of a process: they run at a rate of their own, and the monotonic clock stands still while the machine
 * sleeps.
 */
export class ProcessClock implements Clock {
  readonly #rate: number;
  readonly #now: () => number;
  readonly #worldNow: () => number;
  readonly #sleeps: { readonly from: number; readonly to: number }[] = [];
  #wallAhead = 0;
  #wasSetBack = false;
  #hasJumped = false;
  #readAt = -1;
  #reads = 0;

  /**
   * `now`: the time of the world at which the running code is. It is ahead of `worldNow` where that code has worked.
   */
  constructor(rate: number, now: () => number, worldNow: () => number) {
    this.#rate = rate;
    this.#now = now;
    this.#worldNow = worldNow;
  }

  get rate(): number {
    return this.#rate;
  }

  /** Whether the wall clock was ever set back, which can hide that the machine slept. */
  get wasSetBack(): boolean {
    return this.#wasSetBack;
  }

  /** Whether the clocks ever ran apart. */
  get hasJumped(): boolean {
    return this.#hasJumped || this.#sleeps.length > 0;
  }

  /** Whether the wall clock went ahead of the monotonic one. */
  get isAhead(): boolean {
    return this.#wallAhead > 0;
  }

  monotonic(): number {
    // While code works, the clock of its process stands, and the model reads it at each event of the others.
    const worldNow = this.#worldNow();
    this.#reads = worldNow === this.#readAt ? this.#reads + 1 : 0;
    this.#readAt = worldNow;
    if (this.#reads > MOST_READS) {
      throw new Error('The clock was read too often: something waits without a pause.');
    }
    return this.at(this.#now());
  }

  /** The past or future time of the monotonic clock at `now`. */
  at(now: number): number {
    return 1_000 + (now - this.sleptBefore(now)) * this.#rate;
  }

  wall(): number {
    return 1_000 + this.#now() * this.#rate + this.#wallAhead;
  }

  setWall(ms: number): void {
    this.#wallAhead += ms;
    this.#wasSetBack ||= ms < 0;
    this.#hasJumped = true;
  }

  /** The machine sleeps from now on, or after the sleep that it is in; answers until when. */
  sleep(now: number, ms: number): number {
    const from = Math.max(now, this.#sleeps.at(-1)?.to ?? 0);
    this.#sleeps.push({ from, to: from + ms });
    return from + ms;
  }

  /** Whether the machine sleeps, and no code can run. */
  isAsleepAt(now: number): boolean {
    return this.#sleeps.some(({ from, to }) => from <= now && to >= now);
  }

  /** When the machine wakes from the sleep that it is in; `now` where it is in none. */
  awakeFrom(now: number): number {
    return this.#sleeps.reduce((at, { from, to }) => (from <= at && at < to ? to : at), now);
  }

  /** For how long the machine had slept by then. */
  sleptBefore(now: number): number {
    return this.#sleeps.reduce((ms, { from, to }) => ms + Math.max(0, Math.min(now, to) - from), 0);
  }
}
