import type { Clock } from '../../../lib/core/clock.js';

/** The clocks of a process: they run at a rate of their own, and the monotonic one stands still while the machine sleeps. */
export class ProcessClock implements Clock {
  readonly #rate: number;
  readonly #now: () => number;
  readonly #sleeps: { readonly from: number; readonly to: number }[] = [];
  #wallAhead = 0;
  #wasSetBack = false;

  /** `now`: the time of the world at which the code that runs now is. */
  constructor(rate: number, now: () => number) {
    this.#rate = rate;
    this.#now = now;
  }

  get rate(): number {
    return this.#rate;
  }

  /** Whether the wall clock was ever set back, which can hide that the machine slept. */
  get wasSetBack(): boolean {
    return this.#wasSetBack;
  }

  /** Whether the wall clock went ahead of the monotonic one. */
  get isAhead(): boolean {
    return this.#wallAhead > 0;
  }

  monotonic(): number {
    return this.at(this.#now());
  }

  /** What the monotonic clock showed or will show. */
  at(now: number): number {
    return 1_000 + (now - this.sleptBefore(now)) * this.#rate;
  }

  wall(): number {
    return 1_000 + this.#now() * this.#rate + this.#wallAhead;
  }

  setWall(ms: number): void {
    this.#wallAhead += ms;
    this.#wasSetBack ||= ms < 0;
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

  /** For how long the machine had slept by then. */
  sleptBefore(now: number): number {
    return this.#sleeps.reduce((ms, { from, to }) => ms + Math.max(0, Math.min(now, to) - from), 0);
  }
}
