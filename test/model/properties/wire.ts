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
} from '../../../lib/core/lock-store.js';
import type { QueuedPlace } from '../../../lib/stores/kit/key-state.js';
import type { TableReply } from '../../../lib/stores/kit/lock-table.js';
import type { Process } from './process.js';
import type { Fate, ProcessScript } from './scenario.js';

/** How often those who queue look for their turn themselves, as in the stores. */
export const RECHECK_MS = 2_000;
const PASSES: Fate = { kind: 'passes', outMs: 1, backMs: 1, lagMs: 0 };

/** The store as a process sees it: through a network that follows its script. */
export class Wire implements LockStore, Turns, Tickets, Operator {
  readonly expires = true;
  readonly turns: Turns = this;
  readonly tickets: Tickets = this;
  readonly operator: Operator = this;
  readonly #process: Process;
  readonly #script: ProcessScript;
  #commands = 0;
  #messages = 0;
  #turn: TurnListener | undefined;
  #forced: ForcedListener | undefined;

  constructor(process: Process, script: ProcessScript) {
    this.#process = process;
    this.#script = script;
  }

  async acquire({ ...hold }: HoldRecord, place?: Place): Promise<AcquireReply> {
    const { id, world, now: sentAt } = this.#process;
    const sent = await this.#send(hold.key, `acquire ${hold.id}`, () => world.server.acquire(hold, id, place && this.#queued(place)));
    return this.#answered(hold, sentAt, sent);
  }

  async exchange(
    { ...hold }: HoldRecord,
    { ...next }: HoldRecord,
    place: Place,
    mayOvertake: boolean,
  ): Promise<{ released: boolean; reply: AcquireReply }> {
    const { id, world, now: sentAt } = this.#process;
    const { released, reply } = await this.#send(hold.key, `pass ${hold.id} to ${next.id}`, () =>
      world.server.pass(hold, next, id, this.#queued(place), mayOvertake),
    );
    this.#released(hold, released);
    return { released, reply: this.#answered(next, sentAt, reply) };
  }

  async leave(key: string, name: string): Promise<void> {
    await this.#send(key, `leave ${name}`, () => this.#process.world.server.leave(key, name));
  }

  async join({ ...hold }: HoldRecord): Promise<boolean> {
    const { id, world, now: sentAt } = this.#process;
    const entered = await this.#send(hold.key, `join ${hold.id}`, () => world.server.join(hold, id));
    if (entered) {
      world.leases.confirmed(this.#process, hold, hold.fence, sentAt);
    }
    return entered;
  }

  async renew(holds: readonly HoldRecord[]): Promise<boolean[]> {
    const { world, now: sentAt } = this.#process;
    const copies = holds.map((hold) => ({ ...hold }));
    const keys = holds.map(({ key }) => key).join();
    const held = await this.#send(keys, `renew ${keys}`, () => copies.map((hold) => world.server.renew(hold)));
    copies.forEach((hold, i) => {
      if (held[i]) {
        world.leases.confirmed(this.#process, hold, hold.fence, sentAt);
      } else {
        world.leases.gone(hold);
      }
    });
    return held;
  }

  async release({ ...hold }: HoldRecord): Promise<boolean> {
    const { world } = this.#process;
    const released = await this.#send(hold.key, `release ${hold.id}`, () => world.server.release(hold));
    this.#released(hold, released);
    return released;
  }

  async inspect(key: string): Promise<StoredLock | null> {
    return this.#send(key, 'inspect', () => this.#process.world.server.inspect(key));
  }

  async forceRelease(key: string, fence: number): Promise<boolean> {
    return this.#send(key, 'force', () => this.#process.world.server.forceRelease(key, fence));
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

  turn(key: string, name: string): void {
    this.#message(`turn of ${name}`, () => this.#turn?.turn(key, name));
  }

  forced(key: string, fence: number): void {
    this.#message(`forced out of ${key}`, () => {
      this.#process.world.leases.forced(this.#process, key, fence);
      this.#forced?.(key, fence);
    });
  }

  #queued({ name }: Place): QueuedPlace {
    return { name, process: this.#process.id, polls: false };
  }

  #released(hold: HoldRecord, released: boolean): void {
    if (!released) {
      this.#process.world.leases.gone(hold);
    }
  }

  #answered(hold: HoldRecord, sentAt: number, reply: TableReply): AcquireReply {
    if (reply.fence !== undefined) {
      this.#process.world.leases.confirmed(this.#process, hold, reply.fence, sentAt);
      return { fence: reply.fence };
    }
    return reply.rank >= 0 ? { ...reply, recheckMs: RECHECK_MS } : reply;
  }

  #send<R>(key: string, what: string, execute: () => R): Promise<R> {
    const process = this.#process;
    const { world, library } = process;
    const { timeline, scenario } = world;
    const { kind, outMs, backMs, lagMs } = (world.isHealed ? undefined : this.#script.fates[this.#commands++]) ?? PASSES;
    world.note(() => `${process.id} sends ${what}: ${kind} ${outMs}+${backMs}`);
    // Whatever worked before it was sent has taken its time.
    const workMs = process.now - world.now;
    const isReset = kind === 'reset' || (!world.isHealed && process.refusedUntil > process.now);
    const resetMs = Math.min(outMs, scenario.commandTimeoutMs);
    const lastsMs = outMs + backMs + (kind === 'doubled' ? lagMs : 0);
    if (isReset) {
      process.disturbed(workMs + resetMs);
    } else if (kind === 'request lost' || kind === 'reply lost' || lastsMs > 10) {
      process.disturbed(workMs + Math.max(scenario.commandTimeoutMs, lastsMs));
    }
    return new Promise((resolve, reject) => {
      timeline.after(workMs + (isReset ? resetMs : scenario.commandTimeoutMs), () =>
        process.handle(() => reject(new library.LockStoreError(`${what}: no reply`, key, { unknown: true }))),
      );
      if (isReset) {
        return;
      }
      const arrive = (isAnswered: boolean): void => {
        const reply = world.attempt(execute);
        world.note(() => `${process.id}: ${what} is carried out: ${JSON.stringify(reply?.result)}`);
        if (isAnswered && reply) {
          timeline.after(backMs, () => process.handle(() => resolve(reply.result)));
        }
      };
      if (kind !== 'request lost') {
        timeline.after(workMs + outMs, () => arrive(kind === 'passes'));
      }
      if (kind === 'doubled') {
        timeline.after(workMs + outMs + lagMs, () => arrive(true));
      }
    });
  }

  #message(what: string, deliver: () => void): void {
    const { world } = this.#process;
    const isLost = !world.isHealed && (this.#script.lost[this.#messages++] ?? false);
    world.note(() => `${this.#process.id} is told: ${what}${isLost ? ', which is lost' : ''}`);
    if (isLost) {
      world.faults++;
      return;
    }
    world.timeline.after(1, () => this.#process.handle(deliver));
  }
}
