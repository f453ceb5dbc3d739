import type { HeldLock, WaitingCall } from '../../../lib/operate/peers/survey';
import type { StoreAnswer } from '../../../console/page/snapshot';
import type { Random } from '../../support/random';
import { surveyOfShop } from './survey-of-shop';

const TTL_MS = 10_000;
const RENEWAL_MS = TTL_MS / 3;
/** How late a process answers at most, in milliseconds. */
const LATE_MS = 8;

interface FleetLock {
  readonly row: Omit<HeldLock, 'heldMs' | 'remainingMs'>;
  readonly beganAt: number;
}

interface FleetCall {
  readonly row: Omit<WaitingCall, 'waitedMs' | 'leftMs'>;
  readonly beganAt: number;
}

/** How many of each there are. */
export interface FleetSize {
  readonly processes: number;
  readonly locks: number;
  readonly waiting: number;
}

/**
 * The answers that the processes of one store would give, second by second: locks with leases of 10 s that are renewed,
 * and calls that wait.
 */
export class FleetOfLocks {
  readonly #random: Random;
  readonly #store: string;
  readonly #processes: StoreAnswer['processes'];
  #locks: FleetLock[] = [];
  #calls: FleetCall[] = [];
  #fence = 1_795_390_000_000_000;

  constructor(random: Random, store: string, { processes, locks, waiting }: FleetSize) {
    this.#random = random;
    this.#store = store;
    const [pattern] = surveyOfShop().processes as [StoreAnswer['processes'][number]];
    this.#processes = Array.from({ length: processes }, (_, at) => {
      const host = `worker-5b6d8-${(at * 7_919 + 46_656).toString(36)}`;
      return { ...pattern, host, id: `${host}:17#a${at}f3` };
    });
    this.#locks = Array.from({ length: locks }, () => this.#newLock(-random.whole(0, 600_000)));
    this.#calls = Array.from({ length: waiting }, () => this.#newCall(-random.whole(0, 5_000)));
  }

  /** Releases so many locks, and acquires as many; the same with calls that wait. */
  turnOver(locks: number, calls: number, now: number): void {
    this.#locks = [...this.#without(this.#locks, locks), ...Array.from({ length: locks }, () => this.#newLock(now))];
    this.#calls = [...this.#without(this.#calls, calls), ...Array.from({ length: calls }, () => this.#newCall(now))];
  }

  /** The answer at `now`; a process that answers a moment later has held its locks a moment longer. */
  answer(now: number): StoreAnswer {
    const late = new Map(this.#processes.map(({ id }) => [id, this.#random.whole(0, LATE_MS)]));
    const ageOf = ({ row, beganAt }: FleetLock | FleetCall): number => now + (late.get(row.process) ?? 0) - beganAt;
    return {
      store: this.#store,
      failed: undefined,
      processes: this.#processes,
      held: this.#locks.map((lock) => ({
        ...lock.row,
        heldMs: ageOf(lock),
        remainingMs: Math.round(TTL_MS - (ageOf(lock) % RENEWAL_MS)),
      })),
      waiting: this.#calls.map((call) => ({ ...call.row, waitedMs: ageOf(call), leftMs: 60_000 - ageOf(call) })),
      ended: [],
      incidents: [],
      leftOut: 0,
      silent: [],
      orphans: [],
    };
  }

  #newLock(beganAt: number): FleetLock {
    const fence = this.#fence++;
    const key = `balance:${this.#random.whole(0, 99_999_999)}`;
    const { id } = this.#random.pick(this.#processes);
    return { beganAt, row: { key, name: 'balance:<id>', site: 'TransferService.run', process: id, fence, callFence: fence } };
  }

  #newCall(beganAt: number): FleetCall {
    const lock = this.#random.pick(this.#locks);
    const own = this.#random.pick(this.#locks).row;
    const { id } = this.#random.pick(this.#processes);
    const { key, name } = lock.row;
    const holds = this.#random.chance(0.2) ? [{ key: own.key, fence: own.fence }] : [];
    return { beganAt, row: { key, name, site: 'RefundService.refund', process: id, id: `w${this.#fence++}`, holds } };
  }

  #without<T>(rows: readonly T[], count: number): T[] {
    const left = [...rows];
    for (let gone = 0; gone < count; gone++) {
      left.splice(this.#random.whole(0, left.length - 1), 1);
    }
    return left;
  }
}
