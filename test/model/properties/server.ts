import type { Clock } from '../../../lib/core/seam/time.js';
import type { HoldRecord, StoredLock } from '../../../lib/core/seam/lock-store.js';
import type { QueuedPlace } from '../../../lib/kit/key-state.js';
import type { LockTable, TableMessages, TableReply } from '../../../lib/kit/lock-table.js';
import { Idleness } from './idleness.js';
import { Mutex } from './mutex.js';
import { Order } from './order.js';
import { KEYS } from './scenario.js';
import type { Listener } from './subscriber.js';
import type { World } from './world.js';

/** The watchers of one key. */
interface Watched {
  readonly mutex: Mutex;
  readonly order: Order;
  readonly idleness: Idleness;
}

/** The store's end of the wires: a lock table with a clock of its own, each answer of which is shown to the model. */
export class Server implements Clock, TableMessages {
  /** The subscriber connections that it believes in. */
  readonly listeners = new Set<Listener>();
  readonly #world: World;
  /** Any day of this century: fences are its microseconds. */
  #ahead = 1_750_000_000_000;
  /** Its latest time at a grant, and whether it has been flushed. */
  #latest = 0;
  #isFlushed = false;
  #isForgetful = false;
  #setBackMs = 0;
  #table: LockTable;
  readonly #keys: ReadonlyMap<string, Watched>;
  /** Those that no call locks: the library tries a store that fails by a key of its own. */
  readonly #others = new Map<string, Watched>();

  constructor(world: World) {
    this.#world = world;
    this.#table = this.#newTable();
    this.#keys = new Map(KEYS.map((key) => [key, this.#newWatched()]));
  }

  /** Whether releases may have been forgotten before their time. */
  get isForgetful(): boolean {
    return this.#isForgetful;
  }

  /** How much longer than they were granted for leases may last, since its clock was set back. */
  get setBackMs(): number {
    return this.#setBackMs;
  }

  monotonic(): number {
    return this.#world.now + this.#ahead;
  }

  wall(): number {
    return this.monotonic();
  }

  acquire(hold: HoldRecord, process: string, place: QueuedPlace | undefined): TableReply {
    const reply = this.#table.acquire(hold, process, place);
    this.#acquired(hold, process, place, reply, false);
    return { ...reply };
  }

  exchange(
    hold: HoldRecord,
    next: HoldRecord,
    process: string,
    place: QueuedPlace,
    mayOvertake: boolean,
  ): { released: boolean; reply: TableReply } {
    const { released, reply } = this.#table.exchange(hold, next, process, place, mayOvertake);
    this.#watched(hold.key).mutex.released(hold, released);
    this.#acquired(next, process, place, reply, mayOvertake && released);
    return { released, reply: { ...reply } };
  }

  leave(key: string, name: string): void {
    this.#table.leave(key, name);
    const { mutex, order } = this.#watched(key);
    mutex.look();
    order.left(name);
  }

  join(hold: HoldRecord, process: string): boolean {
    const entered = this.#table.join(hold, process) === 'joined';
    this.#watched(hold.key).mutex.joined(hold, entered);
    return entered;
  }

  renew(hold: HoldRecord): boolean {
    const held = this.#table.renew(hold);
    this.#watched(hold.key).mutex.renewed(hold, held);
    return held;
  }

  release(hold: HoldRecord): boolean {
    const released = this.#table.release(hold);
    this.#watched(hold.key).mutex.released(hold, released);
    return released;
  }

  inspect(key: string): StoredLock | null {
    this.#watched(key).mutex.look();
    return this.#table.inspect(key);
  }

  forceRelease(key: string, fence: number): boolean {
    this.#world.leases.pardon(key);
    const isForced = this.#table.forceRelease(key, fence);
    if (isForced) {
      this.#watched(key).mutex.forced();
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
    this.#isForgetful = true;
    this.#world.leases.pardon(...KEYS);
    this.#table = this.#newTable();
    this.#isFlushed = true;
    for (const { mutex } of [...this.#keys.values(), ...this.#others.values()]) {
      mutex.forgotten();
    }
  }

  jump(ms: number): void {
    if (ms < 0 && this.#isFlushed) {
      return;
    }
    this.#ahead += ms;
    this.#setBackMs += Math.max(0, -ms);
    if (ms > 0) {
      this.#isForgetful = true;
      this.#world.leases.pardon(...KEYS);
    }
  }

  /** Notes which keys are free now, and checks that none is for too long. */
  look(): void {
    for (const [key, { mutex, idleness }] of this.#keys) {
      idleness.observed(mutex.isFree);
      const idleMs = mutex.isFree ? this.idleMs(key, this.#world.waitingSince(key)) : undefined;
      if (idleMs !== undefined) {
        this.#world.fail(`"${key}" was free for ${idleMs.toFixed(1)} ms, though a live process waited for it.`);
      }
    }
  }

  /** The lease of a process serves its next call. */
  served(key: string, process: string): void {
    this.#watched(key).order.served(process);
  }

  /** For how long the key was free while somebody waited since then, if that is too long. */
  idleMs(key: string, waitingSince: number): number | undefined {
    return this.#watched(key).idleness.tooLong(waitingSince);
  }

  /** Whoever is in a lock. */
  get holds(): readonly HoldRecord[] {
    return [...this.#keys.values()].flatMap(({ mutex }) => mutex.holds);
  }

  turn({ process, name }: QueuedPlace, key: string): number {
    this.#watched(key).idleness.turned(name);
    const listeners = this.#listeners(process);
    for (const listener of listeners) {
      listener.process.wire.turn(key, name, () => !listener.isDeaf);
    }
    return listeners.length;
  }

  forced(process: string, key: string, fence: number): void {
    for (const listener of this.#listeners(process)) {
      listener.process.wire.forced(key, fence, () => !listener.isDeaf);
    }
  }

  #listeners(id: string): Listener[] {
    return [...this.listeners].filter(({ process }) => process.id === id);
  }

  #acquired(hold: HoldRecord, process: string, place: QueuedPlace | undefined, reply: TableReply, isExchange: boolean): void {
    const { mutex, order } = this.#watched(hold.key);
    const before = mutex.fence;
    mutex.acquired(hold, reply.fence);
    if (reply.fence === undefined) {
      if (reply.joined && place) {
        order.joined(place);
      }
      return;
    }
    this.#latest = Math.max(this.#latest, this.wall());
    this.#world.leases.granted(hold.key, reply.fence);
    if (reply.fence !== before) {
      order.granted(process, place, isExchange);
    }
  }

  #watched(key: string): Watched {
    const watched = this.#keys.get(key) ?? this.#others.get(key) ?? this.#newWatched();
    if (!this.#keys.has(key)) {
      this.#others.set(key, watched);
    }
    return watched;
  }

  #newWatched(): Watched {
    const isCalm = (): boolean => this.#world.faults.count === 0;
    return { mutex: new Mutex(this), order: new Order(isCalm), idleness: new Idleness(this.#world) };
  }

  #newTable(): LockTable {
    return new this.#world.Table(this, this);
  }
}
