import type { HoldRecord } from '../../lib/core/lock-store.js';
import { leaseDeadline } from '../../lib/core/lease-time.js';
import type { Trust } from './history.js';
import type { Line } from './line.js';
import type { Process } from './process.js';
import type { Event } from './timeline.js';

/** Code that runs under the lock, with the renewals of its lease. */
export class Section {
  readonly #trust: Trust;
  readonly #timers: Event[];

  constructor(
    readonly line: Line,
    readonly hold: HoldRecord,
    readonly fence: number,
    sectionMs: number,
    sentAt: number,
  ) {
    const { process } = line;
    const { history, timeline } = process.simulation;
    this.#trust = { hold, process: process.id, until: 0, ended: false };
    history.trusts(this.#trust, Section.deadlineOf(sentAt, hold.ttlMs, process));
    this.#timers = [
      process.after(sectionMs, () => this.#finish()),
      process.after(hold.ttlMs / 3, () => this.#renew()),
      process.after(this.#trust.until - timeline.now, () => this.#expire()),
    ];
  }

  /** The deadline in simulated time: a fast clock reaches it sooner. */
  static deadlineOf(sentAt: number, ttlMs: number, process: Process): number {
    return sentAt + leaseDeadline(0, ttlMs) / process.rate;
  }

  end(): void {
    this.line.process.simulation.history.ended(this.#trust);
    for (const timer of this.#timers) {
      timer.cancelled = true;
    }
  }

  lose(): void {
    this.end();
    this.line.process.release(this.hold);
    this.line.lost();
  }

  #finish(): void {
    this.end();
    this.line.done(this.hold);
  }

  #expire(): void {
    const { process } = this.line;
    const leftMs = this.#trust.until - process.simulation.timeline.now;
    if (leftMs > 0) {
      this.#timers.push(process.after(leftMs, () => this.#expire()));
    } else {
      this.lose();
    }
  }

  /** A nested call may want a longer lease than the section itself, and be over at the next renewal. */
  #renew(): void {
    const { hold, line, fence } = this;
    const { process } = line;
    const { random, timeline, server, history, rules } = process.simulation;
    const sentAt = timeline.now;
    const ttlMs = random.chance(0.4) ? hold.ttlMs * random.between(1, 4) : hold.ttlMs;
    const renewIn = (ms: number) => this.#timers.push(process.after(ms, () => this.#renew()));
    process.send(
      hold.ttlMs,
      () => server.renew({ ...hold, ttlMs, fence }),
      (renewed) => {
        if (this.#trust.ended) {
          return;
        }
        if (renewed && timeline.now < this.#trust.until) {
          history.trusts(this.#trust, Section.deadlineOf(rules.countsFromSending ? sentAt : timeline.now, ttlMs, process));
          renewIn(hold.ttlMs / 3);
        } else {
          this.lose();
        }
      },
      () => this.#trust.ended || renewIn(hold.ttlMs / 20),
    );
  }
}
