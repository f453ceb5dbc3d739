import type { HoldRecord } from '../../lib/core/lock-store.js';
import type { TableReply } from '../../lib/stores/kit/lock-table.js';
import type { Line } from './line.js';
import { Section } from './section.js';
import type { Event } from './timeline.js';

/** One call that wants the lock. */
export interface Caller {
  /** 0: does not queue; Infinity: never gives up. */
  readonly waitMs: number;
  readonly ttlMs: number;
  readonly sectionMs: number;
}

/** The caller that contends for its process. */
export class Contender {
  readonly since: number;
  hold: HoldRecord;
  inFlight = false;
  /** It wants no grant any more, once its attempt is answered. */
  #gaveUp = false;
  /** Sticky: an earlier attempt may still be on its way, whatever a later one was answered. */
  #unknown = false;
  #timer: Event | undefined;

  constructor(
    readonly line: Line,
    readonly caller: Caller,
  ) {
    this.since = line.process.simulation.timeline.now;
    this.hold = line.process.newHold(caller.ttlMs);
  }

  giveUp(): void {
    if (this.inFlight) {
      this.#gaveUp = true;
    } else {
      this.#abandon();
    }
  }

  attempt(): void {
    if (this.line.contender === this) {
      const { hold, line } = this;
      const { simulation, id } = line.process;
      const place = this.caller.waitMs > 0 ? line.placeToQueueAt() : undefined;
      this.#send(() => simulation.server.acquire(hold, id, place), 0);
    }
  }

  attemptAt(at: number): void {
    const { process } = this.line;
    this.#cancelTimer();
    this.#timer = process.after(Math.max(0, at - process.simulation.timeline.now), () => this.attempt());
  }

  /** One command releases the hold before, and acquires. */
  pass(before: HoldRecord, passes: number, mayOvertake: boolean): void {
    const { hold, line } = this;
    const { simulation, id, releasing } = line.process;
    const place = line.placeToQueueAt();
    releasing.add(before.id);
    this.#send(() => simulation.server.pass(before, hold, id, place, mayOvertake), mayOvertake ? passes : 0, before);
  }

  #send(execute: () => TableReply, passes: number, before?: HoldRecord): void {
    const { process, place } = this.line;
    const sentAt = process.simulation.timeline.now;
    this.#cancelTimer();
    this.inFlight = true;
    if (place) {
      place.turned = false;
    }
    process.send(
      this.hold.ttlMs,
      execute,
      (reply) => {
        this.inFlight = false;
        process.releasing.delete(before?.id ?? '');
        if (reply.fence === undefined) {
          this.#busy(reply);
        } else {
          this.#granted(reply.fence, sentAt, passes);
        }
      },
      () => {
        this.inFlight = false;
        if (before) {
          process.release(before);
        }
        this.#unanswered();
      },
    );
  }

  #granted(fence: number, sentAt: number, passes: number): void {
    const { line, hold, caller } = this;
    const { rules, timeline } = line.process.simulation;
    // The server took it off the queue.
    line.place = undefined;
    this.#unknown = false;
    const from = rules.countsFromSending ? sentAt : timeline.now;
    const late = timeline.now >= Section.deadlineOf(from, hold.ttlMs, line.process);
    if (!late && !this.#gaveUp) {
      line.enter(new Section(line, hold, fence, caller.sectionMs, from), passes);
      return;
    }
    if (rules.releasesUnwanted) {
      line.process.release(hold);
    }
    this.hold = line.process.newHold(caller.ttlMs);
    this.#goOn(timeline.now);
  }

  #busy({ joined, rank, remainingMs }: TableReply & { readonly fence?: undefined }): void {
    const { place, process } = this.line;
    const { timeline, rules, history } = process.simulation;
    const skipped = joined && place?.queued ? place : undefined;
    if (place) {
      place.queued = true;
      const soon = rank < 2 || !process.subscriber.acknowledged;
      place.recheckAt = timeline.now + Math.min(soon ? 300 : 2_000, remainingMs + 1);
    }
    this.#goOn(rules.rechecks ? (place?.recheckAt ?? 0) : Infinity);
    if (skipped) {
      // It had its turn without hearing of it. Last: losing the subscription makes whoever is paused attempt at once.
      history.skipped(skipped.name);
      process.subscriber.distrust();
    }
  }

  #unanswered(): void {
    const { timeline, random } = this.line.process.simulation;
    this.#unknown = true;
    this.#goOn(timeline.now + random.between(50, 250));
  }

  /** Attempts once more, or now if its turn has come meanwhile. */
  #goOn(at: number): void {
    if (this.#gaveUp || this.caller.waitMs === 0) {
      this.#abandon();
    } else if (this.line.place?.turned) {
      this.attempt();
    } else if (at < Infinity) {
      this.attemptAt(at);
    }
  }

  /** What it may have been granted is given back. */
  #abandon(): void {
    this.#cancelTimer();
    this.line.contender = undefined;
    if (this.#unknown) {
      this.line.process.release(this.hold);
    }
    this.line.next();
  }

  #cancelTimer(): void {
    if (this.#timer) {
      this.#timer.cancelled = true;
    }
  }
}
