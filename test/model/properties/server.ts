import type { Clock } from '../../../lib/core/clock.js';
import type { HoldRecord, StoredLock } from '../../../lib/core/lock-store.js';
import type { QueuedPlace } from '../../../lib/stores/kit/key-state.js';
import type { LockTable, Messages, TableReply } from '../../../lib/stores/kit/lock-table.js';
import { Mutex } from './mutex.js';
import { KEYS } from './scenario.js';
import type { World } from './world.js';

/** The store's end of the wires: a lock table with a clock of its own, each answer of which is shown to the model. */
export class Server implements Clock, Messages {
  readonly #world: World;
  /** Any day of this century: fences are its microseconds. */
  #ahead = 1_750_000_000_000;
  /** Its latest time at a grant, and whether it has been flushed. */
  #latest = 0;
  #isFlushed = false;
  /** Whether releases may have been forgotten before their time. */
  isForgetful = false;
  #table: LockTable;
  readonly #mutexes = new Map(KEYS.map((key) => [key as string, new Mutex(this)]));
  readonly #freeSince = new Map<string, number>();

  constructor(world: World) {
    this.#world = world;
    this.#table = this.#newTable();
  }

  monotonic(): number {
    return this.#world.now + this.#ahead;
  }

  wall(): number {
    return this.monotonic();
  }

  acquire(hold: HoldRecord, process: string, place?: QueuedPlace): TableReply {
    const reply = this.#table.acquire(hold, process, place);
    this.#acquired(hold, reply);
    return { ...reply };
  }

  pass(
    hold: HoldRecord,
    next: HoldRecord,
    process: string,
    place: QueuedPlace,
    mayOvertake: boolean,
  ): { released: boolean; reply: TableReply } {
    const { released, reply } = this.#table.exchange(hold, next, process, place, mayOvertake);
    this.#mutex(hold.key).released(hold, released);
    this.#acquired(next, reply);
    return { released, reply: { ...reply } };
  }

  leave(key: string, name: string): void {
    this.#table.leave(key, name);
    this.#mutex(key).look();
  }

  join(hold: HoldRecord, process: string): boolean {
    const entered = this.#table.join(hold, process) === 'joined';
    this.#mutex(hold.key).joined(hold, entered);
    return entered;
  }

  renew(hold: HoldRecord): boolean {
    const held = this.#table.renew(hold);
    this.#mutex(hold.key).renewed(hold, held);
    return held;
  }

  release(hold: HoldRecord): boolean {
    const released = this.#table.release(hold);
    this.#mutex(hold.key).released(hold, released);
    return released;
  }

  inspect(key: string): StoredLock | null {
    this.#mutex(key).look();
    return this.#table.inspect(key);
  }

  forceRelease(key: string, fence: number): boolean {
    this.#world.leases.pardon(key);
    const isForced = this.#table.forceRelease(key, fence);
    if (isForced) {
      this.#mutex(key).forced();
    }
    return isForced;
  }

  /** An operator takes the lock from whoever has it. */
  force(key: string): void {
    const stored = this.inspect(key);
    if (stored) {
      this.forceRelease(key, stored.fence);
    }
  }

  /** Fences rise all the same, as long as the clock is not behind: it is put right before. */
  flush(): void {
    this.#ahead += Math.max(0, this.#latest - this.wall()) + 1;
    this.isForgetful = true;
    this.#world.leases.pardon(...KEYS);
    this.#table = this.#newTable();
    this.#isFlushed = true;
    for (const mutex of this.#mutexes.values()) {
      mutex.forgotten();
    }
  }

  jump(ms: number): void {
    if (ms < 0 && this.#isFlushed) {
      return;
    }
    this.#ahead += ms;
    if (ms > 0) {
      this.isForgetful = true;
      this.#world.leases.pardon(...KEYS);
    }
  }

  /** Notes which keys are free now. */
  look(): void {
    for (const [key, mutex] of this.#mutexes) {
      if (!mutex.isFree) {
        this.#freeSince.delete(key);
      } else if (!this.#freeSince.has(key)) {
        this.#freeSince.set(key, this.#world.now);
      }
    }
  }

  /** For how long nobody has had the key. */
  freeFor(key: string): number {
    return this.#world.now - (this.#freeSince.get(key) ?? this.#world.now);
  }

  /** Whoever is in a lock. */
  get holds(): readonly HoldRecord[] {
    return [...this.#mutexes.values()].flatMap(({ holds }) => holds);
  }

  turn({ process, name }: QueuedPlace, key: string): number {
    return this.#world.tell(process, (wire) => wire.turn(key, name));
  }

  forced(process: string, key: string, fence: number): void {
    this.#world.tell(process, (wire) => wire.forced(key, fence));
  }

  #acquired(hold: HoldRecord, reply: TableReply): void {
    this.#mutex(hold.key).acquired(hold, reply.fence);
    if (reply.fence !== undefined) {
      this.#latest = Math.max(this.#latest, this.wall());
      this.#world.leases.granted(hold.key, reply.fence);
    }
  }

  #mutex(key: string): Mutex {
    return this.#mutexes.get(key) as Mutex;
  }

  #newTable(): LockTable {
    return new this.#world.Table(this, this);
  }
}
