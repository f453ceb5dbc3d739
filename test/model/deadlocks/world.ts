import { setImmediate } from 'node:timers/promises';
import type { CycleCall } from '../../../lib/core/words/cycle-call.js';
import { LockNotAcquiredError } from '../../../lib/core/words/errors.js';
import type { Clock } from '../../../lib/core/seam/time.js';
import type { LockService } from '../../../lib/nest/lock.service.js';
import { Random } from '../../support/random.js';
import { Timeline, type Event } from '../properties/timeline.js';
import type { Library, LoadLibrary } from '../properties/library.js';
import { ModelStore, Network } from './network.js';

/** One history: what its calls and its network are like. */
export interface Conditions {
  readonly processes: number;
  readonly calls: number;
  readonly keys: number;
  /** The shortest and the longest time that a call waits for one lock, in milliseconds. */
  readonly waitMs: readonly [number, number];
  /** Whether they wait for so long that every deadlock is found before. */
  readonly isPatient: boolean;
  /** The chance of a message to be late, by up to 3 s; where there is one, messages are lost and doubled as well. */
  readonly lateness: number;
  /** After which time a call that waits asks the store again, in milliseconds. */
  readonly recheckMs: number;
}

/** The longest time of a search: until one of the calls looks, which it does after about a second, and three laps. */
const SEARCH_MS = 2_000;

/** The history of a call with one key. */
interface Stay {
  readonly call: string;
  readonly key: string;
  wantsAt: number;
  /** When it stopped waiting: it has the lock, or gave up. */
  decidedAt: number;
  insideAt: number;
  leftAt: number;
  fence: number;
}

/** A copy of the library for each process, which many histories use one after the other. */
export class Processes {
  readonly libraries: readonly Library[];
  world: World | undefined;

  constructor(load: LoadLibrary, count: number) {
    this.libraries = Array.from({ length: count }, () =>
      load({
        setTimeout: (run, ms) => (this.world as World).setTimeout(run, ms),
        clearTimeout: (timer) => {
          if (timer) {
            (timer as Event).cancelled = true;
          }
        },
        random: () => (this.world as World).random.next(),
      }),
    );
  }
}

/** Plays one history of nested calls, and checks every deadlock that is reported against what the calls really did. */
export class World implements Clock {
  readonly timeline = new Timeline();
  readonly random: Random;
  readonly #conditions: Conditions;
  readonly #services: readonly LockService[];
  readonly #stays: Stay[] = [];
  readonly #running = new Set<Promise<void>>();
  readonly #reported = new Set<string>();
  readonly failures: string[] = [];
  readonly #counted = new Set<unknown>();
  #deadlocks = 0;

  constructor(processes: Processes, conditions: Conditions, seed: number) {
    processes.world = this;
    this.random = new Random(seed);
    this.#conditions = conditions;
    const network = new Network(this, (processes.libraries[0] as Library).LockTable, conditions);
    this.#services = processes.libraries.slice(0, conditions.processes).map(({ LockService: Service }, at) => {
      const siblings = new Map<string, LockService>();
      const settings = {
        name: 'default',
        store: new ModelStore(network, `p${at}:1:0000000${at}`),
        ttl: 60_000,
        wait: 0,
        maxWaiters: { perKey: 1_000, perProcess: 1_000 },
        onTrouble: () => undefined,
        clock: this,
        deadlocksAfterMs: 1_000,
        open: { prefix: 'lock', warn: () => undefined },
      };
      return new Service(settings, siblings);
    });
  }

  /** How many calls gave way. */
  get deadlocks(): number {
    return this.#deadlocks;
  }

  monotonic(): number {
    return this.timeline.now;
  }

  wall(): number {
    return this.timeline.now;
  }

  setTimeout(run: () => void, ms: number): object {
    const event = this.timeline.after(ms, run);
    return Object.defineProperty(event, 'unref', { value: () => event });
  }

  /** Throws what went wrong. */
  async run(): Promise<void> {
    for (let call = 0; call < this.#conditions.calls; call++) {
      const depth = this.random.whole(2, 3);
      const keys = this.#someKeys(depth);
      const service = this.random.pick(this.#services);
      this.timeline.after(this.random.between(0, 1_500), () => {
        const run = this.#nest(service, `call-${call}`, keys).catch((error: unknown) => this.#ended(error));
        this.#running.add(run);
        void run.finally(() => this.#running.delete(run));
      });
    }
    const end = 600_000;
    for (let played = 0; this.timeline.runNext(end); played++) {
      await setImmediate();
      if (this.#running.size === 0 && this.timeline.now > 1_500) {
        break;
      }
    }
    if (this.#running.size > 0) {
      this.failures.push(`${this.#running.size} calls still run after ${end} ms.`);
    }
    if (this.failures.length > 0) {
      throw new Error(this.failures.join('\n'));
    }
  }

  /** Takes the keys one inside the other. A call may go on, or try again, where it did not get the next one. */
  async #nest(service: LockService, call: string, keys: readonly string[]): Promise<void> {
    const { random } = this;
    for (let tries = 1; keys.length > 0; tries++) {
      await this.#pause(300);
      try {
        await this.#lock(service, call, keys);
        return;
      } catch (error) {
        if (tries > 3 || random.chance(0.4)) {
          throw error;
        }
        this.#ended(error);
        await this.#pause(1_500);
        if (random.chance(0.5)) {
          return;
        }
      }
    }
    await this.#pause(300);
  }

  async #lock(service: LockService, call: string, [key, ...inner]: readonly string[]): Promise<void> {
    const stay: Stay = {
      call,
      key: key as string,
      wantsAt: this.timeline.now,
      decidedAt: Infinity,
      insideAt: Infinity,
      leftAt: Infinity,
      fence: 0,
    };
    this.#stays.push(stay);
    try {
      const wait = this.random.between(...this.#conditions.waitMs);
      await service.withLock(stay.key, { wait, by: call }, async ({ fence }) => {
        stay.decidedAt = stay.insideAt = this.timeline.now;
        stay.fence = fence;
        try {
          await this.#nest(service, call, inner);
        } finally {
          stay.leftAt = this.timeline.now;
        }
      });
    } finally {
      stay.decidedAt = Math.min(stay.decidedAt, this.timeline.now);
    }
  }

  /** A call has not got a lock. Errors are passed on through the calls around it, and count once. */
  #ended(error: unknown): void {
    if (this.#counted.has(error)) {
      return;
    }
    this.#counted.add(error);
    if (!(typeof error === 'object' && error !== null && 'reason' in error)) {
      this.failures.push(`A call failed: ${String(error)}`);
      return;
    }
    const { reason, cycle, key, waitedMs } = error as LockNotAcquiredError;
    if (reason === 'cycle') {
      this.#deadlocks++;
      this.#check(cycle ?? [], key, waitedMs);
    } else if (this.#conditions.isPatient) {
      this.failures.push(`A call ended with '${reason}', though every deadlock should have been found.`);
    }
  }

  /** There was a moment at which every call of the cycle had its lock and waited for the next one. */
  #check(cycle: readonly CycleCall[], refused: string, waitedMs: number): void {
    const text = cycle.map(({ site, holds, waitsFor }) => `${site} ${holds}→${waitsFor}`).join(', ');
    if (cycle.length < 2 || cycle.some(({ waitsFor }, at) => waitsFor !== cycle.at((at + 1) % cycle.length)?.holds)) {
      this.failures.push(`No cycle: ${text}`);
    }
    const blocked = cycle.map((each) => this.#blocked(each));
    const moments = blocked.flatMap((times) => times.map(({ from }) => from)).toSorted((one, other) => one - other);
    const moment = moments.findLast((at) => blocked.every((times) => times.some(({ from, to }) => from <= at && at <= to)));
    if (moment === undefined) {
      this.failures.push(`There was never such a cycle: ${text}, ${JSON.stringify(blocked)}`);
      return;
    }
    const name = `${text.split(', ').toSorted().join(', ')} at ${moment}`;
    if (this.#reported.has(name)) {
      this.failures.push(`Two calls of one cycle gave way: ${name}`);
    }
    this.#reported.add(name);
    // A call that would close a cycle within its process is refused at once.
    if (waitedMs > 0) {
      this.#checkSearch(cycle, refused, moment, text);
    }
  }

  /** The call that got its lock last gives way; soon, where no message is late. */
  #checkSearch(cycle: readonly CycleCall[], refused: string, moment: number, text: string): void {
    const fences = cycle.map(({ site, holds }) => this.#stays.findLast(({ call, key }) => call === site && key === holds)?.fence ?? 0);
    const yielded = cycle.findIndex(({ waitsFor }) => waitsFor === refused);
    if (fences[yielded] !== Math.max(...fences)) {
      this.failures.push(`A call gave way that did not get its lock last: the one that waited for ${refused}, of ${text}`);
    }
    const tookMs = this.timeline.now - moment;
    if (this.#conditions.lateness === 0 && tookMs > SEARCH_MS) {
      this.failures.push(`It took ${tookMs.toFixed(0)} ms to find the cycle ${text}`);
    }
  }

  /** When a call was inside one lock and waited for the other. */
  #blocked({ site, holds, waitsFor }: CycleCall): { readonly from: number; readonly to: number }[] {
    const of = (wanted: string): Stay[] => this.#stays.filter(({ call, key }) => call === site && key === wanted);
    return of(holds).flatMap((held) =>
      of(waitsFor).map((wanted) => ({
        from: Math.max(held.insideAt, wanted.wantsAt),
        to: Math.min(held.leftAt, wanted.decidedAt, this.timeline.now),
      })),
    );
  }

  #pause(mostMs: number): Promise<void> {
    return new Promise((resolve) => this.timeline.after(this.random.between(1, mostMs), resolve));
  }

  #someKeys(count: number): string[] {
    const keys = Array.from({ length: this.#conditions.keys }, (_, at) => `k${at}`);
    return Array.from({ length: count }, () => keys.splice(this.random.whole(0, keys.length - 1), 1)[0] as string);
  }
}
