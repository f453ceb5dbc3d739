import type { HoldRecord } from '../../lib/core/lock-store.js';
import type { QueuedPlace } from '../../lib/stores/kit/key-state.js';
import { Contender, type Caller } from './contender.js';
import type { Process } from './process.js';
import type { Section } from './section.js';

/** How many grants in a row a process may have while others queue. */
const LONGEST_BURST = 16;

/** The callers of one process: one in its section or contending, the others in line. */
export class Line {
  contender: Contender | undefined;
  /** The position of the process in the queue, through several attempts and callers. */
  place: { readonly name: string; queued: boolean; turned: boolean; recheckAt: number | undefined } | undefined;
  #section: Section | undefined;
  #callers: Caller[] = [];
  #passes = 0;

  constructor(readonly process: Process) {}

  /** Since when somebody waits here for the server. */
  get waitingSince(): number | undefined {
    return this.contender && this.contender.caller.waitMs > 0 ? this.contender.since : undefined;
  }

  get isQuiet(): boolean {
    return !this.contender && !this.#section && this.#callers.length === 0;
  }

  caresFor(hold: string): boolean {
    return this.contender?.hold.id === hold || this.#section?.hold.id === hold;
  }

  arrive(caller: Caller): void {
    if (caller.waitMs > 0) {
      this.#callers.push(caller);
      if (caller.waitMs < Infinity) {
        this.process.after(caller.waitMs, () => this.#giveUp(caller));
      }
      this.next();
    } else if (this.isQuiet) {
      this.#contend(caller).attempt();
    }
  }

  /** Whether somebody here has that place. */
  turn(name: string): boolean {
    if (this.place?.name !== name) {
      return false;
    }
    if (this.contender?.inFlight) {
      this.place.turned = this.process.simulation.rules.remembersTurns;
    } else {
      this.contender?.attempt();
    }
    return true;
  }

  forced(fence: number): void {
    if (this.#section?.fence === fence) {
      this.#section.lose();
    }
  }

  attemptIfPaused(): void {
    if (!this.contender?.inFlight) {
      this.contender?.attempt();
    }
  }

  placeToQueueAt(): QueuedPlace {
    this.place ??= { name: this.process.newName(), queued: false, turned: false, recheckAt: undefined };
    return { name: this.place.name, process: this.process.id, polls: !this.process.subscriber.acknowledged };
  }

  enter(section: Section, passes: number): void {
    this.contender = undefined;
    this.#section = section;
    this.#passes = passes;
  }

  /** The section's lease is gone; its release is on its way. */
  lost(): void {
    this.#section = undefined;
    this.next();
  }

  /** The section is over. */
  done(hold: HoldRecord): void {
    this.#section = undefined;
    const caller = this.#callers.shift();
    if (caller) {
      const passes = this.#passes + 1;
      this.#contend(caller).pass(hold, passes, passes < LONGEST_BURST);
    } else {
      this.process.release(hold);
    }
  }

  /** Lets the next caller contend, if nobody does. */
  next(): void {
    if (this.contender || this.#section) {
      return;
    }
    const caller = this.#callers.shift();
    if (caller) {
      const contender = this.#contend(caller);
      // A caller that inherits a place inherits its re-check too: a burst of callers giving up is no burst of attempts.
      if (this.place?.recheckAt !== undefined && !this.place.turned) {
        contender.attemptAt(this.place.recheckAt);
      } else {
        contender.attempt();
      }
    } else if (this.place) {
      this.process.leave(this.place.name);
      this.place = undefined;
    }
  }

  die(): void {
    this.#section?.end();
    this.#section = undefined;
    this.contender = undefined;
    this.#callers = [];
  }

  #contend(caller: Caller): Contender {
    this.contender = new Contender(this, caller);
    return this.contender;
  }

  #giveUp(caller: Caller): void {
    if (this.contender?.caller === caller) {
      this.contender.giveUp();
    } else {
      this.#callers = this.#callers.filter((other) => other !== caller);
    }
  }
}
