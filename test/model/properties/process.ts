import { AsyncResource } from 'node:async_hooks';
import type { Clock } from '../../../lib/core/clock.js';
import type { LockService } from '../../../lib/lock.service.js';
import type { LockTrouble } from '../../../lib/core/reporter.js';
import type { Event } from '../timeline.js';
import type { Library, Surroundings } from './library.js';
import type { ProcessScript } from './scenario.js';
import { Wire } from './wire.js';
import type { World } from './world.js';

/** One process: the real core, with a clock, timers and a connection of its own. A restart after a crash is another process. */
export class Process implements Clock {
  readonly service: LockService;
  readonly wire: Wire;
  /** Timers of the library that are set. */
  readonly timers = new Set<Event>();
  isAlive = true;
  /** Until then its event loop stands still. */
  pausedUntil = -1;
  pausedMs = 0;
  wallAhead = 0;
  /** The end of the last fault that it met. */
  disturbedUntil = -Infinity;
  readonly #rate: number;

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
    const onTrouble = (trouble: LockTrouble): void => world.leases.troubled(this, trouble);
    const { wire } = this;
    this.service = new library.LockService(
      { name: 'default', store: wire, ttl: 1_000, wait: 1_000, maxWaiters, onTrouble, open, clock: this },
      new Map(),
    );
  }

  monotonic(): number {
    return this.clockAt(this.world.now);
  }

  /** What its clock showed or will show. */
  clockAt(now: number): number {
    return 1_000 + now * this.#rate;
  }

  wall(): number {
    return this.monotonic() + this.wallAhead;
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
      this.world.timeline.after(ms, () => this.handle(done));
    });
  }

  setTimeout(run: () => void, ms: number): unknown {
    // As Node's timers do, it runs in the context of the code that set it.
    const bound = AsyncResource.bind(run);
    const event = this.world.timeline.after(Math.max(1, ms) / this.#rate, () =>
      this.handle(() => {
        // It may have been cleared while the process stood still.
        if (this.timers.delete(event)) {
          bound();
        }
      }),
    );
    this.timers.add(event);
    const timer = { event, unref: () => timer };
    return timer;
  }

  clearTimeout(timer: unknown): void {
    const { event } = (timer ?? {}) as { event?: Event };
    if (event && this.timers.delete(event)) {
      event.cancelled = true;
    }
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
