import { AsyncResource } from 'node:async_hooks';
import type { LockTrouble } from '../../../lib/core/words/lock-event.js';
import type { LockService } from '../../../lib/nest/lock.service.js';
import type { Library, Surroundings } from './library.js';
import { ProcessClock } from './process-clock.js';
import type { ProcessScript } from './scenario.js';
import type { Event } from './timeline.js';
import { Transactions } from './transactions.js';
import { Wire } from './wire.js';
import type { World } from './world.js';

interface Timer {
  event: Event;
}

/**
 * One process: the real core, with a clock, timers and connections of its own. A restart after a crash is another
 * process.
 */
export class Process {
  readonly service: LockService;
  readonly wire: Wire;
  readonly clock: ProcessClock;
  readonly transactions: Transactions;
  /** Timers of the library that are set. */
  readonly timers = new Set<Timer>();
  /** Until then a lease may run that one of its commands began so late that core releases no longer. */
  lateLeaseUntil = -Infinity;
  /** The events that reached it while it stood still: timers run before messages when it goes on. */
  readonly #backlog: { readonly timers: (() => void)[]; readonly others: (() => void)[] } = { timers: [], others: [] };
  #isAlive = true;
  #isClosing = false;
  #isClosed = false;
  #pausedUntil = -1;
  #pausedMs = 0;
  #workingUntil = -1;
  #refusedUntil = -1;
  #disturbedUntil = -Infinity;

  constructor(
    readonly world: World,
    readonly id: string,
    readonly library: Library,
    script: ProcessScript,
  ) {
    this.clock = new ProcessClock(
      script.rate,
      () => this.now,
      () => world.now,
    );
    this.wire = new Wire(this, script);
    this.transactions = new Transactions(this);
    const { wire, clock } = this;
    const transaction = this.transactions.option;
    const open = { prefix: 'lock', warn: () => undefined };
    const maxWaiters = { perKey: 100, perProcess: 100 };
    const onTrouble = (trouble: LockTrouble): void => {
      world.leases.troubled(this, trouble);
      this.work(script.loggerMs);
    };
    const siblings = new Map<string, LockService>();
    this.service = new library.LockService(
      { name: 'default', store: wire, ttl: 1_000, wait: 1_000, maxWaiters, onTrouble, open, clock, transaction },
      siblings,
    );
    siblings.set('default', this.service);
  }

  get isAlive(): boolean {
    return this.#isAlive;
  }

  /** Whether its application shuts down, or has. */
  get isClosing(): boolean {
    return this.#isClosing;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** The time of the world at which the code that runs now is. */
  get now(): number {
    return Math.max(this.world.now, this.#workingUntil);
  }

  /** Until then its event loop stands still. */
  get pausedUntil(): number {
    return this.#pausedUntil;
  }

  /** For how long it has stood still in all. */
  get pausedMs(): number {
    return this.#pausedMs;
  }

  /** Until then its code works without a pause: what it reads, sets and sends in this turn is of that time. */
  get workingUntil(): number {
    return this.#workingUntil;
  }

  /** Until then nothing that it sends gets anywhere, and it knows that at once. */
  get refusedUntil(): number {
    return this.#refusedUntil;
  }

  /** The end of the last fault that it met. */
  get disturbedUntil(): number {
    return this.#disturbedUntil;
  }

  /** Since when it neither stands still nor is cut off; `Infinity` while it is. */
  get soundSince(): number {
    const since = Math.max(this.#pausedUntil, this.#refusedUntil, this.wire.connection.cutOffUntil);
    return this.#isAlive && since < this.world.now ? since : Infinity;
  }

  /** Something reaches the process: now, or when it goes on after a pause, or never. */
  handle(run: () => void, isTimer = false): void {
    if (!this.#isAlive) {
      return;
    }
    const { timers, others } = this.#backlog;
    if (this.#pausedUntil > this.world.now || timers.length + others.length > 0) {
      this.#backlog[isTimer ? 'timers' : 'others'].push(run);
    } else {
      run();
    }
  }

  /** Like SIGSTOP. */
  pause(ms: number): void {
    this.#standStill(this.world.now + ms, ms);
    this.disturbed(ms);
  }

  /** Its machine sleeps, and then has no network for a while. */
  sleepThrough(ms: number, refusedMs: number): void {
    // The work that it is in the midst of ends after the sleep.
    const until = this.clock.sleep(this.world.now, ms) + Math.max(0, this.#workingUntil - this.world.now);
    this.#refusedUntil = until + refusedMs;
    this.#standStill(until, ms);
    this.disturbed(until + refusedMs - this.world.now);
  }

  /** Code of the application that works for so long, in the midst of whatever called it. */
  work(ms: number): void {
    if (ms > 0) {
      this.#workingUntil = this.now + ms;
      this.#standStill(this.#workingUntil, ms);
      this.disturbed(this.#workingUntil - this.world.now);
    }
  }

  async shutdown(): Promise<void> {
    this.#isClosing = true;
    await this.service.shutdown();
    this.#isClosed = true;
  }

  /** The server counts its subscriber connection for some time yet. */
  crash(countedMs: number): void {
    this.wire.subscriber.break(countedMs, Infinity);
    this.#isAlive = false;
  }

  disturbed(ms: number): void {
    const until = this.world.now + ms;
    this.world.faults.happened(this.world.now, until);
    this.#disturbedUntil = Math.max(this.#disturbedUntil, until);
  }

  /** Time that the code of the application takes. */
  sleep(ms: number): Promise<void> {
    return new Promise((done) => {
      this.#after(ms, done);
    });
  }

  setTimeout(run: () => void, ms: number): unknown {
    // As Node's timers do, it runs in the context of the code that set it.
    const context = new AsyncResource('Timer');
    const set: Timer = this.#after(Math.max(1, ms) / this.clock.rate, () => {
      // It may have been cleared while the process stood still.
      if (this.timers.delete(set)) {
        context.runInAsyncScope(run);
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

  #standStill(until: number, ms: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, until);
    this.#pausedMs += ms;
    this.world.timeline.after(until - this.world.now, () => this.#goOn());
    this.world.timeline.after(until - this.world.now + 1, () => undefined);
  }

  /** The events that piled up happen now, one after the other. */
  #goOn(): void {
    if (this.#pausedUntil <= this.world.now) {
      const { timers, others } = this.#backlog;
      for (const run of [...timers.splice(0), ...others.splice(0)]) {
        this.world.timeline.after(0, () => this.handle(run));
      }
    }
  }

  /** A timer of the process, which does not run on while its machine sleeps. */
  #after(ms: number, run: () => void): Timer {
    const { now, clock } = this;
    const arm = (inMs: number, sleptMs: number): Event =>
      this.world.timeline.after(inMs, () => {
        const slept = clock.sleptBefore(this.world.now);
        if (slept > sleptMs) {
          // The timer counts on from the end of the sleep: a timer that was due just after the beginning of the sleep
          // would else be armed thousands of times.
          const awakeFrom = clock.awakeFrom(this.world.now);
          timer.event = arm(awakeFrom - this.world.now + slept - sleptMs, clock.sleptBefore(awakeFrom));
        } else {
          this.handle(run, true);
        }
      });
    const timer = { event: arm(now - this.world.now + ms, clock.sleptBefore(now)) };
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
