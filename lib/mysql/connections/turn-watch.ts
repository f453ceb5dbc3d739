import { AsyncResource } from 'node:async_hooks';
import type { Place } from '../../core/seam/lock-store.js';
import { LONGEST_COMMAND_MS } from '../../core/seam/time.js';
import { CLAIM_MS } from '../../kit/protocol.js';
import type { MySqlKeys } from '../mysql-keys.js';
import type { DatabaseOptions } from '../../sql/database.js';
import type { Row } from '../../sql/dialect.js';
import type { CallbackPool } from '../mysql-pool.js';
import { textOf } from '../rows.js';
import { Sleeper } from './sleeper.js';
import { NOW } from '../tables.js';

/**
 * How often a process that nothing can wake polls for its turns, in milliseconds: first or second in a queue, or
 * further behind.
 */
const POLL_MS = { near: 50, far: 300 } as const;
/**
 * The longest sleep, in milliseconds: half of a reservation, so that a turn is found in time for which nobody could
 * wake the process.
 */
const SLEEP_MS = CLAIM_MS / 2;
/** How old a turn is that this process should have been woken for, in milliseconds. */
const MISSED_MS = 200;
/** How long a failed query is followed by none, in milliseconds. */
const PAUSE_MS = 250;

/** The part of its database that the watch needs. */
interface WatchContext extends DatabaseOptions<MySqlKeys> {
  readonly pool: CallbackPool;
  readonly table: string;
  /** Whether it never tries to be woken. */
  readonly polls: boolean;
  /** Runs a statement; rejects where it fails. */
  run(sql: string): Promise<readonly Row[]>;
}

/** A place, and whether it was notified since it asked last. */
interface Watched {
  readonly key: string;
  readonly name: string;
  isNotified: boolean;
}

/**
 * Polls for the turns of all places of a process, with one query for all of their keys, for as long as there is any
 * place. Between two polls it sleeps in the server, where the process that hands a lock over can wake it; or in this
 * process, where that does not work.
 */
export class TurnWatch {
  readonly #context: WatchContext;
  readonly #sleeper: Sleeper;
  /** By their keys. */
  readonly #places = new Map<string, Watched[]>();
  /** The turns of places that were given up, and that the server was told of, by their keys. */
  readonly #left = new Map<string, string>();
  #isRunning = false;
  #isClosed = false;
  /** Ends a pause between two looks. */
  #hurry: (isReady: boolean) => void = () => undefined;

  constructor(context: WatchContext) {
    this.#context = context;
    this.#sleeper = new Sleeper(context, () => {
      this.#hurry(true);
      // Its places were queued as places of a process that polls, or are such places from now on.
      context.listeners.recheck();
    });
  }

  /** Whether this process can be woken. */
  get acknowledged(): boolean {
    return this.#sleeper.isReady;
  }

  /** A place is in the queue of a key, and its turn is looked for. */
  add(key: string, { name }: Place): void {
    if (this.#isClosed) {
      return;
    }
    this.#places.set(key, [...this.#others(key, name), { key, name, isNotified: false }]);
    this.#hurry(false);
    if (!this.#isRunning) {
      this.#isRunning = true;
      void this.#run();
    }
  }

  /** The place of that name was granted the lock, or was given up. */
  remove(key: string, name: string): void {
    const others = this.#others(key, name);
    if (others.length > 0) {
      this.#places.set(key, others);
    } else {
      this.#places.delete(key);
      this.#left.delete(key);
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#places.clear();
    this.#left.clear();
    this.#hurry(true);
    this.#sleeper.end();
  }

  #others(key: string, name: string): Watched[] {
    return (this.#places.get(key) ?? []).filter((place) => place.name !== name);
  }

  /** Bound to where the store was made: it must not keep the context of the call that waits first. */
  readonly #run = AsyncResource.bind(async (): Promise<void> => {
    do {
      let pauseMs: number = POLL_MS.near;
      while (this.#places.size > 0) {
        if (!this.#context.polls) {
          this.#sleeper.prepare();
        }
        const mayWake = this.#sleeper.isReady;
        const isWoken = mayWake ? await this.#sleeper.sleep(pauseMs, this.#due()) : await this.#pause(Math.min(pauseMs, POLL_MS.far));
        pauseMs = isWoken && this.#notifyOnly() ? SLEEP_MS : await this.#look(mayWake);
      }
      if (this.#sleeper.isReady) {
        // An acquire on its way may queue its place as one of a process that can be woken. The place would be skipped
        // as that of a process that is gone.
        await this.#pause(LONGEST_COMMAND_MS);
      }
    } while (this.#places.size > 0);
    this.#isRunning = false;
    this.#sleeper.end();
  });

  /** Notifies the place that was meant where there is only one. A look would say no more. */
  #notifyOnly(): boolean {
    const [place, ...others] = [...this.#places.values()].flat();
    if (place === undefined || others.length > 0 || place.isNotified) {
      return false;
    }
    this.#tell(place);
    return true;
  }

  /**
   * Pauses for `ms`; ends early where the process may be woken from now on, or where a place is added that may be the
   * first of its queue. Resolves to false.
   */
  #pause(ms: number): Promise<false> {
    return new Promise((resolve) => {
      const end = (): void => resolve(false);
      const timer = setTimeout(end, ms).unref();
      this.#hurry = (isReady) => {
        if (isReady || ms > POLL_MS.near) {
          clearTimeout(timer);
          end();
        }
      };
    });
  }

  /** Notifies of the turns that have come. Resolves to how long to wait before the next look, in milliseconds. */
  async #look(mayWake: boolean): Promise<number> {
    if (this.#places.size === 0) {
      return 0;
    }
    let nextMs: number = mayWake ? SLEEP_MS : POLL_MS.far;
    try {
      for (const row of await this.#context.run(this.#looking())) {
        const leftMs = Number(row['left_us']) / 1_000;
        if (this.#notify(row, leftMs) && mayWake && leftMs < CLAIM_MS - MISSED_MS) {
          this.#sleeper.missed();
        }
        nextMs = Math.min(nextMs, mayWake ? Math.max(POLL_MS.near, Math.ceil(leftMs)) : POLL_MS.near);
      }
    } catch {
      return PAUSE_MS;
    }
    return nextMs;
  }

  /**
   * Notifies the place whose turn it is. A free lock is the turn of the first place in the queue. If that place is in
   * another process, or this process is no longer in the queue, all places of this process for the key are notified.
   * Answers whether a place had not been notified of its reservation before.
   */
  #notify(row: Row, leftMs: number): boolean {
    const key = this.#context.keys.key(row['name'] as Buffer);
    const places = this.#places.get(key) ?? [];
    const placeOf = (column: unknown): Watched | undefined =>
      places.find(({ name }) => textOf(column) === `${this.#context.process}:${name}`);
    const isLost = Number(row['is_queued']) === 0;
    const reserved = leftMs > 0 ? placeOf(row['turn']) : placeOf(row['first_place']);
    const due = reserved ? [reserved] : leftMs <= 0 || isLost ? places : [];
    const turn = textOf(row['turn']);
    if (leftMs > 0 && !reserved && turn.startsWith(`${this.#context.process}:`) && this.#left.get(key) !== turn) {
      // The turn belongs to a place that was given up without the server being told: nobody waits for it, so the place
      // is left now. This is done once, though the statement may wait for the row.
      this.#left.set(key, turn);
      this.#context.listeners.turn(key, turn.slice(this.#context.process.length + 1));
    }
    const unaware = due.filter(({ isNotified }) => !isNotified);
    unaware.forEach((place) => this.#tell(place));
    return leftMs > 0 && reserved !== undefined && unaware.length > 0;
  }

  #tell(place: Watched): void {
    place.isNotified = true;
    this.#context.listeners.turn(place.key, place.name);
  }

  /**
   * The rows where this process is first or second, has its turn, is no longer in the queue, or could have the lock,
   * since nobody has it.
   */
  #looking(): string {
    const { process, table } = this.#context;
    const mine = hex(`${process}:`);
    const firstPlace = `trim(TRAILING ${hex('~')} FROM substring_index(substring(queue, 2), ${hex(';')}, 1))`;
    return `SELECT name, turn, ${firstPlace} AS first_place, ends - ${NOW} AS left_us, coalesce(locate(${mine}, queue), 0) AS is_queued FROM ${table}
WHERE name IN (${this.#names()}) AND (ends <= ${NOW} OR locate(${mine}, turn) = 1 OR locate(${mine}, substring_index(queue, ${hex(';')}, 3)) > 0
  OR coalesce(locate(${mine}, queue), 0) = 0) LIMIT ${this.#places.size}`;
  }

  /**
   * The SQL condition that a place has its turn and was not notified. The sleep tests it itself: a process that is
   * woken before it sleeps would miss the turn otherwise.
   */
  #due(): string {
    const { process, table } = this.#context;
    const unaware = [...this.#places.values()].flat().filter(({ isNotified }) => !isNotified);
    const turns = ['', ...unaware.map(({ name }) => `${process}:${name}`)].map(hex).join(', ');
    return `EXISTS (SELECT 1 FROM ${table} WHERE name IN (${this.#names()}) AND turn IN (${turns}) AND ends > ${NOW})`;
  }

  #names(): string {
    return [...this.#places.keys()].map((key) => hex(this.#context.keys.row(key))).join(', ');
  }
}

function hex(text: string | Buffer): string {
  return `X'${Buffer.from(text).toString('hex')}'`;
}
