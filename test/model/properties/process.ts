import { AsyncResource } from 'node:async_hooks';
import type { Clock } from '../../../lib/core/clock.js';
import type { LockService } from '../../../lib/nest/lock.service.js';
import type { LockTrouble } from '../../../lib/core/reporter.js';
import type { Event } from '../timeline.js';
import type { Library, Surroundings } from './library.js';
import type { ProcessScript } from './scenario.js';
import { Wire } from './wire.js';
import type { World } from './world.js';

interface Timer {
  event: Event;
}

/** One process: the real core, with a clock, timers and a connection of its own. A restart after a crash is another process. */
export class Process implements Clock {
  readonly service: LockService;
  readonly wire: Wire;
  /** Timers of the library that are set. */
  readonly timers = new Set<Timer>();
  isAlive = true;
  /** Until then its event loop stands still. */
  pausedUntil = -1;
  pausedMs = 0;
  /** Until then its code works without a pause: what it reads, sets and sends in this turn is of that time. */
  workingUntil = -1;
  /** Until then nothing that it sends gets anywhere, and it knows that at once. */
  refusedUntil = -1;
  wallAhead = 0;
  /** Whether its wall clock was ever set back, which can hide that its machine slept. */
  wasSetBack = false;
  /** The end of the last fault that it met. */
  disturbedUntil = -Infinity;
  readonly #rate: number;
  /** When its machine slept, which its monotonic clock does not know. */
  readonly #sleeps: { readonly from: number; readonly to: number }[] = [];

  constructor(
    readonly world: World,
    readonly id: string,
    readonly library: Library,
    script: ProcessScript,
  ) {
    this.#rate = script.rate;
    this.wire = new Wire(this, script);
    const open = { prefix: 'lock', warn: () => undefined };
    const maxWaiters = { perKey: 100, perProcess: 100 };
    const onTrouble = (trouble: LockTrouble): void => {
      world.leases.troubled(this, trouble);
      this.work(script.loggerMs);
    };
    const { wire } = this;
    this.service = new library.LockService(
      { name: 'default', store: wire, ttl: 1_000, wait: 1_000, maxWaiters, onTrouble, open, clock: this },
      new Map(),
    );
  }

  /** The time of the world at which the code that runs now is. */
  get now(): number {
    return Math.max(this.world.now, this.workingUntil);
  }

  /** Whether its machine sleeps, and no code can run. */
  get isAsleep(): boolean {
    return this.#sleeps.some(({ from, to }) => from <= this.world.now && to >= this.world.now);
  }

  monotonic(): number {
    return this.clockAt(this.now);
  }

  /** What its clock showed or will show. */
  clockAt(now: number): number {
    return 1_000 + (now - this.sleptBefore(now)) * this.#rate;
  }

  wall(): number {
    return 1_000 + this.now * this.#rate + this.wallAhead;
  }

  /** For how long its machine had slept by then. */
  sleptBefore(now: number): number {
    return this.#sleeps.reduce((ms, { from, to }) => ms + Math.max(0, Math.min(now, to) - from), 0);
  }

  /** Something reaches the process: now, or when it goes on after a pause, or never. */
  handle(run: () => void): void {
    if (!this.isAlive) {
      return;
    }
    if (this.pausedUntil > this.world.now) {
      this.world.timeline.after(this.pausedUntil - this.world.now, () => this.handle(run));
    } else {
      run();
    }
  }

  pause(ms: number): void {
    this.pausedUntil = Math.max(this.pausedUntil, this.world.now + ms);
    this.pausedMs += ms;
    this.disturbed(ms);
    this.world.timeline.after(ms + 1, () => undefined);
  }

  /** Its machine sleeps, and then has no network for a while. */
  sleepThrough(ms: number, refusedMs: number): void {
    const from = Math.max(this.world.now, this.#sleeps.at(-1)?.to ?? 0);
    const to = from + ms;
    this.#sleeps.push({ from, to });
    this.refusedUntil = to + refusedMs;
    this.pausedUntil = Math.max(this.pausedUntil, to);
    this.pausedMs += ms;
    this.disturbed(to + refusedMs - this.world.now);
    this.world.timeline.after(to - this.world.now + 1, () => undefined);
  }

  /** Code of the application that works for so long, in the midst of whatever called it. */
  work(ms: number): void {
    if (ms > 0) {
      this.workingUntil = this.now + ms;
      this.pausedUntil = Math.max(this.pausedUntil, this.workingUntil);
      this.pausedMs += ms;
      this.disturbed(this.workingUntil - this.world.now);
      this.world.timeline.after(this.workingUntil - this.world.now + 1, () => undefined);
    }
  }

  crash(): void {
    this.isAlive = false;
  }

  disturbed(ms: number): void {
    this.world.faults++;
    this.disturbedUntil = Math.max(this.disturbedUntil, this.world.now + ms);
  }

  /** Time that the code of the application takes. */
  sleep(ms: number): Promise<void> {
    return new Promise((done) => {
      this.#after(ms, done);
    });
  }

  setTimeout(run: () => void, ms: number): unknown {
    // As Node's timers do, it runs in the context of the code that set it.
    const bound = AsyncResource.bind(run);
    const set: Timer = this.#after(Math.max(1, ms) / this.#rate, () => {
      // It may have been cleared while the process stood still.
      if (this.timers.delete(set)) {
        bound();
      }
    });
    this.timers.add(set);
    const timer = { set, unref: () => timer };
    return timer;
  }

  clearTimeout(timer: unknown): void {
    const { set } = (timer ?? {}) as { set?: Timer };
    if (set && this.timers.delete(set)) {
      set.event.cancelled = true;
    }
  }

  /** A timer of the process, which does not run on while its machine sleeps. */
  #after(ms: number, run: () => void): Timer {
    const { now } = this;
    const arm = (inMs: number, sleptMs: number): Event =>
      this.world.timeline.after(inMs, () => {
        const slept = this.sleptBefore(this.world.now);
        if (slept > sleptMs) {
          timer.event = arm(slept - sleptMs, slept);
        } else {
          this.handle(run);
        }
      });
    const timer = { event: arm(now - this.world.now + ms, this.sleptBefore(now)) };
    return timer;
  }
}

/** A copy of the library belongs to whichever process runs in it at the time. */
export function surroundingsOf(running: () => Process, random: () => number): Surroundings {
  return {
    setTimeout: (run, ms) => running().setTimeout(run, ms),
    clearTimeout: (timer) => running().clearTimeout(timer),
    random,
  };
}
