import type {
  AcquireReply,
  ForcedListener,
  HoldRecord,
  LockStore,
  Operator,
  Place,
  StoredLock,
  Tickets,
  TurnListener,
  Turns,
} from '../../../lib/core/seam/lock-store.js';
import type { QueuedPlace } from '../../../lib/kit/key-state.js';
import type { TableReply } from '../../../lib/kit/lock-table.js';
import type { Rechecks } from '../../../lib/kit/rechecks.js';
import { Connection } from './connection.js';
import type { Process } from './process.js';
import type { MessageFate, ProcessScript } from './scenario.js';
import { Subscriber } from './subscriber.js';

/** How much longer than the limit of a command core waits for its answer at least, in milliseconds. */
const GRACE_MS = 100;

/** When the second copy of a message arrives, or one that is late, in milliseconds. */
const LATE_MS = 20;

/** The store as a process sees it: through a connection for commands, and one for messages. */
export class Wire implements LockStore, Turns, Tickets, Operator {
  readonly expires = true;
  readonly reservesFences = true;
  readonly shared = true;
  readonly permits = true;
  readonly turns: Turns = this;
  readonly tickets: Tickets = this;
  readonly operator: Operator = this;
  readonly connection: Connection;
  readonly subscriber: Subscriber;
  readonly #process: Process;
  readonly #rechecks: Rechecks;
  readonly #messageFates: readonly MessageFate[];
  /** Whether the client sends commands again by itself. */
  readonly #sendsAgain: boolean;
  #messages = 0;
  #turn: TurnListener | undefined;
  #forced: ForcedListener | undefined;

  constructor(process: Process, script: ProcessScript) {
    this.#process = process;
    this.#messageFates = script.messages;
    this.#rechecks = new process.library.Rechecks();
    this.connection = new Connection(process, script.fates);
    this.#sendsAgain = script.fates.some(({ kind }) => kind === 'doubled');
    this.subscriber = new Subscriber(process, () => this.#turn?.recheck());
    this.subscriber.subscribe();
  }

  async acquire(hold: HoldRecord, place?: Place): Promise<AcquireReply> {
    const { id, world, now: sentAt } = this.#process;
    const queued = place && this.#queued(place);
    const sent = await this.connection.sendWithOthers(hold.key, `acquire ${hold.id}`, () => world.server.acquire(hold, id, queued));
    return this.#answered(hold, sentAt, sent, place, this.#isLate(sentAt, hold.limitMs));
  }

  async exchange(
    hold: HoldRecord,
    next: HoldRecord,
    place: Place,
    mayOvertake: boolean,
  ): Promise<{ released: boolean; reply: AcquireReply }> {
    const { id, world, now: sentAt } = this.#process;
    const queued = this.#queued(place);
    const { released, reply } = await this.connection.sendWithOthers(hold.key, `exchange ${hold.id} for ${next.id}`, () =>
      world.server.exchange(this.#marked(hold), next, id, queued, mayOvertake),
    );
    const isLate = this.#isLate(sentAt, hold.limitMs);
    this.#released(hold, released, isLate);
    return { released, reply: this.#answered(next, sentAt, reply, place, isLate) };
  }

  async leave(key: string, name: string): Promise<void> {
    await this.connection.send(key, `leave ${name}`, () => this.#process.world.server.leave(key, name));
  }

  async join(hold: HoldRecord): Promise<boolean> {
    const { id, world, now: sentAt } = this.#process;
    const entered = await this.connection.send(hold.key, `join ${hold.id}`, () => world.server.join(hold, id));
    if (entered) {
      world.leases.confirmed(this.#process, hold, hold.fence, sentAt, this.#isLate(sentAt, hold.limitMs));
    }
    return entered;
  }

  async renew(holds: readonly HoldRecord[]): Promise<boolean[]> {
    const { world, now: sentAt } = this.#process;
    const keys = holds.map(({ key }) => key).join();
    const held = await this.connection.send(keys, `renew ${keys}`, () => holds.map((hold) => world.server.renew(hold)));
    holds.forEach((hold, i) => {
      const isLate = this.#isLate(sentAt, hold.limitMs);
      if (held[i]) {
        world.leases.confirmed(this.#process, hold, hold.fence, sentAt, isLate);
      } else {
        world.leases.gone(hold, isLate);
      }
    });
    return held;
  }

  async release(hold: HoldRecord): Promise<boolean> {
    const { world, now: sentAt } = this.#process;
    const released = await this.connection.sendWithOthers(hold.key, `release ${hold.id}`, () => world.server.release(this.#marked(hold)));
    this.#released(hold, released, this.#isLate(sentAt, hold.limitMs));
    return released;
  }

  async inspect(key: string): Promise<StoredLock | null> {
    return this.connection.send(key, 'inspect', () => this.#process.world.server.inspect(key));
  }

  async forceRelease(key: string, fence: number): Promise<boolean> {
    return this.connection.send(key, 'force', () => this.#process.world.server.forceRelease(key, fence));
  }

  onForced(listener: ForcedListener): void {
    this.#forced = listener;
  }

  onTurn(listener: TurnListener): void {
    this.#turn = listener;
  }

  async close(): Promise<void> {
    // Nothing is open.
  }

  /** A message that the server sends: `arrives` is asked when it does. */
  turn(key: string, name: string, arrives: () => boolean): void {
    this.#message(`turn of ${name}`, arrives, () => this.#turn?.turn(key, name));
  }

  forced(key: string, fence: number, arrives: () => boolean): void {
    this.#message(`forced out of ${key}`, arrives, () => {
      this.#process.world.leases.forced(this.#process, key, fence);
      this.#forced?.(key, fence);
    });
  }

  #queued({ name }: Place): QueuedPlace {
    return { name, process: this.#process.id, polls: !this.subscriber.acknowledged };
  }

  /** Any command of a client that sends again by itself may be on its way. */
  #marked(hold: HoldRecord): HoldRecord {
    return this.#sendsAgain ? { ...hold, unanswered: true } : hold;
  }

  /**
   * Whether core may have stopped waiting for the answer that comes now. At the very moment at which its wait is over,
   * either may come first.
   */
  #isLate(sentAt: number, limitMs: number): boolean {
    const { clock } = this.#process;
    return clock.monotonic() >= clock.at(sentAt) + limitMs + GRACE_MS;
  }

  #released(hold: HoldRecord, released: boolean, isLate: boolean): void {
    if (!released) {
      this.#process.world.leases.gone(hold, isLate);
    }
  }

  #answered(hold: HoldRecord, sentAt: number, reply: TableReply, place: Place | undefined, isLate: boolean): AcquireReply {
    if (reply.fence !== undefined) {
      this.#process.world.leases.confirmed(this.#process, hold, reply.fence, sentAt, isLate);
      if (place) {
        this.#rechecks.forget(place);
      }
      return { fence: reply.fence };
    }
    return place && reply.rank >= 0
      ? { ...reply, recheckMs: this.#rechecks.recheckMs(place, reply.rank, reply.joined, this.subscriber) }
      : reply;
  }

  #message(what: string, arrives: () => boolean, deliver: () => void): void {
    const { world } = this.#process;
    const fate = (world.isHealed ? undefined : this.#messageFates[this.#messages++]) ?? 'arrives';
    world.note(() => `${this.#process.id} is sent: ${what}, which ${fate}`);
    const after = (ms: number): void => void world.timeline.after(ms, () => arrives() && this.#process.handle(deliver));
    if (fate !== 'arrives') {
      world.faults.happened(world.now);
    }
    if (fate === 'arrives' || fate === 'comes twice') {
      after(1);
    }
    if (fate === 'is late' || fate === 'comes twice') {
      after(LATE_MS);
    }
  }
}
