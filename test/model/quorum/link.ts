import type { Command } from '../../../lib/redis/scripts/script.js';
import type { Random } from '../../support/random.js';
import type { Event } from '../properties/timeline.js';
import type { Host } from './host.js';
import type { Participant } from './participant.js';

/** A request of a connection to its process. */
interface Asked {
  readonly carryOut: () => unknown;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: Error) => void;
  readonly timer: Event | undefined;
  isOver: boolean;
}

/** Between two attempts to connect, and of one message, in milliseconds. */
const RETRY_MS = [50, 500] as const;

/** The connection of a process to a server: one after the other, each in order. */
export class Link {
  readonly host: Host;
  readonly #participant: Participant;
  readonly #onReady: (address: string) => void;
  readonly #random: Random;
  /** The requests before there was a connection. */
  readonly #waiting: Asked[] = [];
  readonly #pending = new Set<Asked>();
  /** Rises with each connection that breaks. */
  #broken = 0;
  #isReady = false;
  #isClosed = false;
  /** Until then no connection can be made, and until then no message gets through. */
  #refusedUntil = 0;
  #frozenUntil = 0;
  /** When the last message arrived on either way: they stay in order. */
  #arrivedAt = [0, 0];

  constructor(participant: Participant, host: Host, onReady: (address: string) => void) {
    this.host = host;
    this.#participant = participant;
    this.#onReady = onReady;
    this.#random = participant.world.random;
    host.onEnd.add(this.break);
    this.#connect();
  }

  get #now(): number {
    return this.#participant.world.timeline.now;
  }

  /** No connection for a while. */
  refuse(ms: number): void {
    this.#refusedUntil = Math.max(this.#refusedUntil, this.#now + ms);
    this.break();
  }

  /** No message gets through for a while, and then all do. */
  freeze(ms: number): void {
    this.#frozenUntil = Math.max(this.#frozenUntil, this.#now + ms);
  }

  /** Requests on their way may still get there, and no reply comes back. */
  readonly break = (): void => {
    this.#broken++;
    this.#isReady = false;
    this.#arrivedAt = [0, 0];
    for (const asked of this.#pending) {
      this.#participant.handle(() => this.#end(asked, () => asked.reject(this.#participant.noAnswer('Connection is closed.'))));
    }
    if (!this.#isClosed) {
      this.#connect();
    }
  };

  /** The commands that are no scripts. */
  get plain(): object {
    const ask = (reply: () => unknown, limitMs: number): Promise<unknown> => this.#ask(reply, limitMs);
    return {
      info: () => ask(() => this.host.info, 5_000),
      probe: () => Promise.allSettled([ask(() => ({ latencyMs: 1, clockSkewMs: 0 }), 750)]),
    };
  }

  run<T>(command: Command, limitMs: number, read: (reply: unknown) => T): Promise<T> {
    return this.#ask(() => this.host.carryOut(command), limitMs).then(read);
  }

  close(): void {
    this.#isClosed = true;
    this.host.onEnd.delete(this.break);
    this.break();
  }

  #connect(): void {
    const { timeline } = this.#participant.world;
    const broken = this.#broken;
    timeline.after(this.#random.between(...RETRY_MS), () => {
      if (broken !== this.#broken || this.#isClosed) {
        return;
      }
      if (!this.host.isUp || this.#now < Math.max(this.#refusedUntil, this.#frozenUntil)) {
        this.#connect();
        return;
      }
      this.#participant.handle(() => {
        if (broken === this.#broken && this.host.isUp) {
          this.#ready();
        }
      });
    });
  }

  #ready(): void {
    this.#isReady = true;
    // A client may send what waits a little before it says that it is ready.
    const isLate = this.#random.chance(0.5);
    const flush = (): void => this.#waiting.splice(0).forEach((asked) => !asked.isOver && this.#send(asked));
    if (isLate) {
      flush();
    }
    this.#onReady(this.host.name);
    flush();
  }

  #ask(carryOut: () => unknown, limitMs: number): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const late = (): void => this.#end(asked, () => reject(this.#participant.noAnswer('No answer in time.')));
      const timer = this.#participant.world.timeline.after(limitMs, () => this.#participant.handle(late, true));
      const asked: Asked = { carryOut, resolve, reject, timer, isOver: false };
      if (this.#isReady) {
        this.#send(asked);
      } else {
        this.#waiting.push(asked);
      }
    });
  }

  #send(asked: Asked): void {
    const { world } = this.#participant;
    const broken = this.#broken;
    const { run } = this.host;
    this.#pending.add(asked);
    world.timeline.after(this.#delay(0), () => {
      // A request that has left the process may get there although the connection broke, as long as the server's
      // process is the same.
      if (run !== this.host.run || !this.host.isUp || (broken !== this.#broken && this.#random.chance(0.5))) {
        return;
      }
      let answer: () => void;
      try {
        const reply = asked.carryOut();
        answer = () => asked.resolve(reply);
      } catch (error) {
        answer = () => asked.reject(error as Error);
      }
      world.timeline.after(this.#delay(1), () => {
        if (broken === this.#broken) {
          this.#participant.handle(() => this.#end(asked, answer));
        }
      });
    });
  }

  /** How long a message takes. */
  #delay(way: 0 | 1): number {
    const { conditions, isQuiet } = this.#participant.world;
    const { latencyMs } = conditions;
    const ms = !isQuiet && this.#random.chance(0.02) ? this.#random.between(0, 1_500) : this.#random.between(0, latencyMs);
    const at = Math.max(this.#now + ms, this.#arrivedAt[way] ?? 0, this.#frozenUntil);
    this.#arrivedAt[way] = at;
    return at - this.#now;
  }

  #end(asked: Asked, end: () => void): void {
    if (!asked.isOver) {
      asked.isOver = true;
      this.#pending.delete(asked);
      if (asked.timer) {
        asked.timer.cancelled = true;
      }
      end();
    }
  }
}
