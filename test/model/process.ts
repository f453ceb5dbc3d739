import type { HoldRecord } from '../../lib/core/lock-store.js';
import { Line } from './line.js';
import { KEY } from './server.js';
import type { Simulation } from './simulation.js';
import { Subscriber } from './subscriber.js';
import type { Event } from './timeline.js';

/** One store instance: a command connection, a subscriber, and a line of callers. */
export class Process {
  readonly connection = { sentUntil: 0, repliedUntil: 0, down: false };
  readonly subscriber = new Subscriber(this);
  readonly line = new Line(this);
  /** Holds whose release is not acknowledged yet. */
  readonly releasing = new Set<string>();
  /** Since when it is neither stopped nor cut off; undefined while it is. */
  soundSince: number | undefined = 0;
  dead = false;
  /** Called once, when the next command is on its way. */
  onSent: (() => void) | undefined;
  #backlog: (() => void)[] | undefined;
  #named = 0;

  constructor(
    readonly simulation: Simulation,
    readonly id: string,
    /** How fast its clock goes. */
    readonly rate: number,
  ) {
    this.subscriber.subscribe();
  }

  get isQuiet(): boolean {
    return this.dead || (this.releasing.size === 0 && this.line.isQuiet);
  }

  /** What happens to a process waits while it is stopped, and is nothing to a dead one. */
  handle(run: () => void): void {
    if (this.#backlog) {
      this.#backlog.push(run);
    } else if (!this.dead) {
      run();
    }
  }

  after(ms: number, run: () => void): Event {
    const event: Event = this.simulation.timeline.after(ms, () => this.handle(() => event.cancelled || run()));
    return event;
  }

  newHold(ttlMs: number): HoldRecord {
    const id = this.newName();
    return { key: KEY, owner: id, id, fence: 0, ttlMs, limitMs: Math.min(ttlMs / 4, 1_000), lingering: false, by: this.id };
  }

  newName(): string {
    return `${this.id}-${this.#named++}`;
  }

  /** One command, of unknown outcome after min(ttl/4, 1 s). */
  send<R>(ttlMs: number, execute: () => R, replied: (reply: R) => void, unanswered: () => void): void {
    // Whichever comes first ends the command: a reply after the timeout is dropped.
    let settled = false;
    const settle = (run: () => void) => {
      if (!settled) {
        settled = true;
        timeout.cancelled = true;
        run();
      }
    };
    const timeout = this.after(Math.min(ttlMs / 4, 1_000), () => settle(unanswered));
    this.simulation.network.command(this, execute, (reply) => this.handle(() => settle(() => replied(reply))));
    const { onSent } = this;
    this.onSent = undefined;
    onSent?.();
  }

  /** Until the server has answered, or the lease that it could have granted is over. */
  release(hold: HoldRecord, until = this.simulation.timeline.now + hold.ttlMs): void {
    const { server, timeline } = this.simulation;
    this.releasing.add(hold.id);
    this.send(
      hold.ttlMs,
      () => server.release(hold),
      () => this.releasing.delete(hold.id),
      () => {
        const pauseMs = Math.min(hold.ttlMs / 10, 1_000);
        if (timeline.now + pauseMs < until) {
          this.after(pauseMs, () => this.release(hold, until));
        } else {
          this.releasing.delete(hold.id);
        }
      },
    );
  }

  leave(name: string): void {
    const { network, server } = this.simulation;
    network.command(
      this,
      () => server.leave(name),
      () => {},
    );
  }

  turn(name: string): void {
    if (!this.line.turn(name)) {
      this.leave(name);
    }
  }

  stop(): void {
    this.soundSince = undefined;
    this.#backlog ??= [];
  }

  /** What piled up happens at once, in the order in which it came or, since timers and sockets take turns, another. */
  resume(): void {
    const backlog = this.#backlog ?? [];
    this.#backlog = undefined;
    this.soundSince = this.dead ? undefined : this.simulation.timeline.now;
    for (const run of this.simulation.random.chance(0.5) ? backlog : backlog.toReversed()) {
      this.handle(run);
    }
  }

  crash(): void {
    this.soundSince = undefined;
    this.dead = true;
    this.#backlog = undefined;
    this.line.die();
  }
}
