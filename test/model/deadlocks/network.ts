import type {
  AcquireReply,
  HoldRecord,
  LockStore,
  Messages,
  Operator,
  Place,
  StoredLock,
  TurnListener,
  Turns,
} from '../../../lib/core/seam/lock-store.js';
import type { LockTable } from '../../../lib/kit/lock-table.js';
import type { Conditions, World } from './world.js';

/** A lock table that several processes reach, each command and each message after a time of its own. */
export class Network {
  readonly table: LockTable;
  readonly #world: World;
  readonly #lateness: number;
  readonly recheckMs: number;
  readonly #stores = new Map<string, ModelStore>();
  /** The process of each hold. */
  readonly #processes = new Map<string, Map<string, string>>();

  constructor(world: World, Table: typeof LockTable, { lateness, recheckMs }: Conditions) {
    this.#world = world;
    this.#lateness = lateness;
    this.recheckMs = recheckMs;
    this.table = new Table(world, {
      turn: (place, key) => {
        this.#deliver(() => this.#stores.get(place.process)?.turned(key, place.name));
        return 1;
      },
      forced: () => undefined,
    });
  }

  add(store: ModelStore): void {
    this.#stores.set(store.process, store);
  }

  /** The answer of the table, after the way there and the way back. */
  async ask<T>(command: () => T): Promise<T> {
    await this.#travel();
    const reply = command();
    await this.#travel();
    return reply;
  }

  /** Fails at times: only requests of the search itself may fail. */
  mayFail(): void {
    if (this.#lateness > 0 && this.#world.random.chance(0.1)) {
      throw new Error('The reply is lost.');
    }
  }

  entered({ key, id }: HoldRecord, process: string): void {
    const holds = this.#processes.get(key) ?? new Map<string, string>();
    this.#processes.set(key, holds.set(id, process));
  }

  left({ key, id }: HoldRecord): void {
    this.#processes.get(key)?.delete(id);
  }

  processesOf(key: string): string[] {
    return [...new Set(this.#processes.get(key)?.values())];
  }

  /** Carries a message to a process, or to all. */
  carry(text: string, to: string | undefined): void {
    const { random } = this.#world;
    for (const [process, store] of this.#stores) {
      if (to !== undefined && to !== process) {
        continue;
      }
      const copies = this.#lateness === 0 ? 1 : random.chance(0.1) ? 0 : random.chance(0.2) ? 2 : 1;
      for (let copy = 0; copy < copies; copy++) {
        const lateMs = random.chance(this.#lateness) ? random.between(100, 3_000) : 0;
        this.#world.timeline.after(random.between(0.2, 5) + lateMs, () => store.heard(text));
      }
    }
  }

  #deliver(run: () => void): void {
    this.#world.timeline.after(this.#world.random.between(0.2, 5), run);
  }

  #travel(): Promise<void> {
    return new Promise((resolve) => this.#deliver(resolve));
  }
}

/** The store of one process. */
export class ModelStore implements LockStore, Turns, Operator, Messages {
  readonly expires = true;
  readonly turns: Turns = this;
  readonly operator: Operator = this;
  readonly messages: Messages = this;
  readonly process: string;
  readonly #network: Network;
  #turned: TurnListener | undefined;
  #listener: ((text: string) => void) | undefined;

  constructor(network: Network, process: string) {
    this.process = process;
    this.#network = network;
    network.add(this);
  }

  acquire(hold: HoldRecord, place?: Place): Promise<AcquireReply> {
    const queued = place && { name: place.name, process: this.process, polls: false };
    return this.#network.ask(() => this.#granted(hold, this.#network.table.acquire(hold, this.process, queued)));
  }

  exchange(hold: HoldRecord, next: HoldRecord, place: Place, mayOvertake: boolean): Promise<{ released: boolean; reply: AcquireReply }> {
    const queued = { name: place.name, process: this.process, polls: false };
    return this.#network.ask(() => {
      const { released, reply } = this.#network.table.exchange(hold, next, this.process, queued, mayOvertake);
      this.#network.left(hold);
      return { released, reply: this.#granted(next, reply) };
    });
  }

  leave(key: string, name: string): Promise<void> {
    return this.#network.ask(() => this.#network.table.leave(key, name));
  }

  renew(holds: readonly HoldRecord[]): Promise<boolean[]> {
    return this.#network.ask(() => holds.map((hold) => this.#network.table.renew(hold)));
  }

  release(hold: HoldRecord): Promise<boolean> {
    return this.#network.ask(() => {
      this.#network.left(hold);
      return this.#network.table.release(hold);
    });
  }

  inspect(key: string): Promise<StoredLock | null> {
    return this.#network.ask(() => {
      this.#network.mayFail();
      const stored = this.#network.table.inspect(key);
      return stored && { ...stored, processes: this.#network.processesOf(key) };
    });
  }

  forceRelease(): Promise<boolean> {
    return Promise.resolve(false);
  }

  onForced(): void {}

  onTurn(listener: TurnListener): void {
    this.#turned = listener;
  }

  turned(key: string, name: string): void {
    this.#turned?.turn(key, name);
  }

  async send(text: string, to?: string): Promise<void> {
    this.#network.carry(text, to);
  }

  onMessage(listener: (text: string) => void): void {
    this.#listener = listener;
  }

  heard(text: string): void {
    this.#listener?.(text);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #granted(hold: HoldRecord, reply: AcquireReply & { rank?: number }): AcquireReply {
    if (reply.fence !== undefined) {
      this.#network.entered(hold, this.process);
      return reply;
    }
    return { ...reply, ...(reply.rank !== undefined && reply.rank >= 0 && { recheckMs: this.#network.recheckMs }) };
  }
}
