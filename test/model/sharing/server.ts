import type { HoldRecord, StoredLock } from '../../../lib/core/seam/lock-store.js';
import type { Clock } from '../../../lib/core/seam/time.js';
import type { QueuedPlace } from '../../../lib/kit/key-state.js';
import type { LockTable, TableMessages, TableReply } from '../../../lib/kit/lock-table.js';
import type { Listener } from '../properties/subscriber.js';
import { Room } from './room.js';
import type { SharingWorld } from './world.js';

/** Any day of this century: fences are its microseconds. */
const START_MS = 1_750_000_000_000;
export const KEY = 'a';

/** The store's end of the wires: a lock table, each answer of which is shown to the room of its key. */
export class SharingServer implements Clock, TableMessages {
  readonly listeners = new Set<Listener>();
  readonly room: Room;
  /** When each process was last granted something. */
  readonly grantedAt = new Map<string, number>();
  readonly #world: SharingWorld;
  readonly #table: LockTable;
  /** The room of the keys by which the library tries a store that fails. */
  readonly #others: Room;

  constructor(world: SharingWorld, Table: typeof LockTable) {
    this.#world = world;
    this.#table = new Table(this, this);
    this.room = new Room(
      () => world.now,
      () => world.faults.count === 0,
    );
    this.#others = new Room(
      () => world.now,
      () => false,
    );
  }

  monotonic(): number {
    return this.#world.now + START_MS;
  }

  wall(): number {
    return this.monotonic();
  }

  acquire(hold: HoldRecord, process: string, place: QueuedPlace | undefined): TableReply {
    const reply = this.#table.acquire(hold, process, place);
    this.#roomOf(hold.key).acquired(hold, place, reply, false);
    if (reply.fence !== undefined) {
      this.grantedAt.set(process, this.#world.now);
    }
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
    const room = this.#roomOf(hold.key);
    room.released(hold, released);
    room.acquired(next, place, reply, mayOvertake && released);
    return { released, reply: { ...reply } };
  }

  leave(key: string, name: string): void {
    this.#table.leave(key, name);
    this.#roomOf(key).left(name);
  }

  renew(hold: HoldRecord): boolean {
    const held = this.#table.renew(hold);
    this.#roomOf(hold.key).renewed(hold, held);
    return held;
  }

  release(hold: HoldRecord): boolean {
    const released = this.#table.release(hold);
    this.#roomOf(hold.key).released(hold, released);
    return released;
  }

  inspect(key: string): StoredLock | null {
    return this.#table.inspect(key);
  }

  turn(place: QueuedPlace, key: string): number {
    const heard = [...this.listeners].filter(({ process }) => process.id === place.process);
    if (heard.length > 0 || place.polls) {
      this.#roomOf(key).woken(place);
    } else {
      this.#roomOf(key).left(place.name);
    }
    for (const listener of heard) {
      listener.process.wire.turn(key, place.name, () => !listener.isDeaf);
    }
    return heard.length;
  }

  forced(): void {
    // Nobody does so here.
  }

  #roomOf(key: string): Room {
    return key === KEY ? this.room : this.#others;
  }
}
