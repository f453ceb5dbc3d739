import type { Clock } from '../../lib/core/clock.js';
import type { HoldRecord, StoredLock } from '../../lib/core/lock-store.js';
import type { QueuedPlace } from '../../lib/stores/kit/key-state.js';
import { LockTable, type Messages, type TableReply } from '../../lib/stores/kit/lock-table.js';
import type { Process } from './process.js';
import type { Simulation } from './simulation.js';

export const KEY = 'a';

/** The server's end of a subscriber connection. */
export interface Listener {
  readonly process: Process;
  /** Half-open: the server still counts it, but nothing arrives. */
  deaf: boolean;
}

/** One server: a lock table, a clock that an operator may set, and the subscriber connections it believes in. */
export class Server implements Clock, Messages {
  readonly listeners = new Set<Listener>();
  #table = new LockTable(this, this);
  /** Any day of this century: fences are its microseconds. */
  #clockAhead = 1_750_000_000_000;

  constructor(readonly simulation: Simulation) {}

  monotonic(): number {
    return this.simulation.timeline.now + this.#clockAhead;
  }

  wall(): number {
    return this.monotonic();
  }

  /** What is stored, as the history sees it too. */
  look(): StoredLock | null {
    const stored = this.#table.inspect(KEY);
    this.simulation.history.observed(stored);
    return stored;
  }

  acquire(hold: HoldRecord, process: string, place?: QueuedPlace): TableReply {
    const reply = this.#table.acquire(hold, process, place);
    this.simulation.history.attempted(hold, process, place, reply, false);
    return this.#looking(reply);
  }

  renew(hold: HoldRecord): boolean {
    return this.#looking(this.#table.renew(hold));
  }

  release(hold: HoldRecord): void {
    this.#table.release(hold);
    this.simulation.history.released(hold);
    this.look();
  }

  pass(hold: HoldRecord, next: HoldRecord, process: string, place: QueuedPlace, mayOvertake: boolean): TableReply {
    const { released, reply } = this.#table.exchange(hold, next, process, place, mayOvertake);
    this.simulation.history.released(hold);
    this.simulation.history.attempted(next, process, place, reply, mayOvertake && released);
    return this.#looking(reply);
  }

  leave(name: string): void {
    this.#table.leave(KEY, name);
    this.simulation.history.left(name);
    this.look();
  }

  forceRelease(): void {
    const stored = this.look();
    if (stored) {
      this.simulation.history.pardon();
      this.#table.forceRelease(KEY, stored.fence);
      this.look();
    }
  }

  /** Loses all it knew, also the last fence. */
  restart(): void {
    this.simulation.history.pardon();
    this.#table = new LockTable(this, this);
    this.listeners.clear();
  }

  setClock(ms: number): void {
    this.#clockAhead += ms;
    if (ms > 0) {
      this.simulation.history.pardon();
    }
  }

  turn({ process, name }: QueuedPlace): number {
    this.simulation.history.turned(name);
    return this.#tell(process, (told) => told.turn(name));
  }

  forced(process: string, _key: string, fence: number): void {
    this.#tell(process, ({ line }) => line.forced(fence));
  }

  #looking<R>(reply: R): R {
    this.look();
    return reply;
  }

  #tell(id: string, message: (process: Process) => void): number {
    const hearing = [...this.listeners].filter(({ process }) => process.id === id);
    for (const listener of hearing) {
      const { process } = listener;
      this.simulation.network.message(() => listener.deaf || process.handle(() => message(process)));
    }
    return hearing.length;
  }
}
