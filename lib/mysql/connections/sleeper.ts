import { within } from '../../kit/no-reply.js';
import { ignore } from '../../sql/statement.js';
import type { CallbackPool, MySqlConnection } from '../mysql-pool.js';
import { NAMES, ROLLBACK } from '../tables.js';
import { ask, connectionOf } from './connection.js';

/**
 * For how long no connection is asked for after there was none to be had, or after a wake-up did not arrive, in
 * milliseconds.
 */
const PAUSE_MS = { failed: 1_000, unwoken: 60_000 } as const;
/** How long the server may take to answer, beyond the time that it was told to sleep, in milliseconds. */
const SILENCE_MS = 2_000;
/** How long a new connection waits for its named lock, which the one before it may still hold, in seconds. */
const GET_S = 1;
/** The longest sleep, in seconds. MySQL knows whole seconds only. */
const SLEEP_S = 2;

/** How many pairs of connections are kept of a pool, by all stores that use it. */
const pairsOf = new WeakMap<CallbackPool, number>();

/** The part of its database that a sleeper needs. */
interface SleeperContext {
  readonly pool: CallbackPool;
  readonly process: string;
  readonly warn: (message: string) => void;
}

/** Two connections of the pool, while a process waits. */
interface Pair {
  /** Holds the gate, and does nothing. */
  readonly keeper: MySqlConnection;
  /** Holds the named lock by which others find it, and sleeps. */
  readonly sleeper: MySqlConnection;
}

/**
 * The place where a process sleeps in the server while it waits: one connection of the pool waits for a named lock of
 * the server, the gate, which another connection holds. A process that hands a lock over ends this wait by
 * `KILL QUERY`, which every user may do for its own connections. A sleep that is ended too early costs one poll.
 *
 * It does not run `SLEEP`: all sleeping connections of a MariaDB server share one mutex, and two that are killed at the
 * same moment may hold it for two seconds. A connection that waits for a named lock has a mutex of its own.
 */
export class Sleeper {
  readonly #context: SleeperContext;
  readonly #changed: () => void;
  #pair: Pair | undefined;
  #isWanted = false;
  #isPreparing = false;
  #notBefore = 0;
  /** How often, a short while after each other, a turn was found that nobody had woken this process for. */
  #unwoken = 0;
  /** The sleep in the server, which may go on when `sleep` was over. Resolves to whether somebody ended it. */
  #asleep: Promise<boolean> | undefined;

  /** `changed` is called when this process can be woken from now on, and when it cannot any more. */
  constructor(context: SleeperContext, changed: () => void) {
    this.#context = context;
    this.#changed = changed;
  }

  /** Whether this process can be woken now. */
  get isReady(): boolean {
    return this.#pair !== undefined;
  }

  /** Begins to make sure that this process can be woken, unless that is so, or cannot be. */
  prepare(): void {
    this.#isWanted = true;
    if (!this.#pair && !this.#isPreparing && performance.now() >= this.#notBefore && this.#mayKeepTwo()) {
      void this.#prepare();
    }
  }

  /**
   * Sleeps for `ms` milliseconds at the most. As it falls asleep in the server, it tests the SQL condition `unless`
   * first. Resolves to whether the sleep was ended early: by another process, or by that condition.
   */
  async sleep(ms: number, unless: string): Promise<boolean> {
    if (!this.#pair) {
      return false;
    }
    this.#asleep ??= this.#fallAsleep(this.#pair, unless);
    return within(ms, this.#asleep).catch(() => false);
  }

  /**
   * A turn was found that was handed over a while ago. If the process sleeps all the same, it was not woken, and
   * wake-ups are not to be relied on.
   */
  missed(): void {
    if (this.#asleep && this.#pair) {
      const now = performance.now();
      // Once, and once more after a minute, it may be that the server or the network was slow.
      this.#unwoken = now > this.#notBefore + PAUSE_MS.unwoken ? 0 : this.#unwoken;
      this.#notBefore = now + (PAUSE_MS.unwoken * this.#unwoken || PAUSE_MS.failed);
      if (++this.#unwoken === 2) {
        this.#context.warn(UNWAKEABLE);
      }
      this.#lose(this.#pair);
    }
  }

  /** Gives up both connections. */
  end(): void {
    this.#isWanted = false;
    if (this.#pair) {
      this.#drop(this.#pair);
    }
  }

  async #fallAsleep(pair: Pair, unless: string): Promise<boolean> {
    const gate = gateName(this.#context.process);
    const sql = `SELECT CASE WHEN ${unless} THEN ${DUE} ELSE get_lock('${gate}', ${SLEEP_S}) END AS slept`;
    try {
      const [row] = await ask(pair.sleeper, sql, SLEEP_S * 1_000 + SILENCE_MS);
      if (Number(row?.['slept']) === GOT) {
        throw new Error('the other connection has ended');
      }
      return Number(row?.['slept'] ?? DUE) === DUE;
    } catch {
      this.#lose(pair);
      return false;
    } finally {
      if (this.#pair === pair) {
        this.#asleep = undefined;
      }
    }
  }

  async #prepare(): Promise<void> {
    this.#isPreparing = true;
    this.#count(1);
    this.#notBefore = performance.now() + PAUSE_MS.failed;
    const { process } = this.#context;
    const keeper = await this.#connect(gateName(process));
    const sleeper = keeper && (await this.#connect(presenceName(process)));
    if (keeper && sleeper && this.#isWanted) {
      this.#pair = { keeper, sleeper };
      this.#changed();
    } else {
      keeper?.destroy();
      sleeper?.destroy();
      this.#count(-1);
    }
    this.#isPreparing = false;
  }

  /** Two connections of several: the locks need another one, however many stores use the pool. */
  #mayKeepTwo(): boolean {
    const { pool } = this.#context;
    return (pool.config.connectionLimit ?? Infinity) > 2 * ((pairsOf.get(pool) ?? 0) + 1);
  }

  #count(change: number): void {
    const { pool } = this.#context;
    pairsOf.set(pool, (pairsOf.get(pool) ?? 0) + change);
  }

  /** A connection that holds a named lock; undefined where that is not to be had. */
  async #connect(name: string): Promise<MySqlConnection | undefined> {
    const connection = await connectionOf(this.#context.pool, SILENCE_MS).catch(() => undefined);
    if (!connection || !this.#isWanted) {
      connection?.release();
      return undefined;
    }
    connection.on('error', ignore);
    try {
      // In a transaction, each sleep would see the data that was committed when the transaction began.
      await ask(connection, ROLLBACK, SILENCE_MS);
      await ask(connection, 'SET autocommit = 1, timestamp = DEFAULT, sql_select_limit = DEFAULT', SILENCE_MS);
      const [row] = await ask(connection, `SELECT get_lock('${name}', ${GET_S}) AS got`, GET_S * 1_000 + SILENCE_MS);
      if (Number(row?.['got']) === GOT) {
        return connection;
      }
    } catch {
      // Another connection is tried later.
    }
    connection.destroy();
    return undefined;
  }

  #lose(pair: Pair): void {
    if (this.#pair === pair) {
      this.#drop(pair);
      this.#changed();
    }
  }

  /**
   * The two connections are not returned to the pool: they hold named locks, and somebody may be about to end a
   * statement on one of them.
   */
  #drop({ keeper, sleeper }: Pair): void {
    this.#pair = undefined;
    this.#asleep = undefined;
    this.#count(-1);
    keeper.destroy();
    sleeper.destroy();
  }
}

/**
 * The named lock that a process holds while it can be woken, as `presenceOf` has it in SQL: it consists of pid and
 * digits, since such a name is short.
 */
export function presenceName(process: string): string {
  return `${NAMES}${process.split(':').slice(1, 3).join(':')}`;
}

/** The named lock that a process waits for while it sleeps. */
function gateName(process: string): string {
  return `${presenceName(process)}:gate`;
}

/**
 * The answers of a sleep: the condition was true, or the gate was open; 0 after the whole time, and nothing where it
 * was ended.
 */
const DUE = 2;
const GOT = 1;

const UNWAKEABLE =
  'MySQL hands turns over to this process and does not wake it by KILL QUERY. Make sure that all processes have the same database user, ' +
  'since a user may end its own statements only, and that no proxy spreads their connections over servers. Until then waiters look for ' +
  'their turn every 50 ms; pass { poll: true } to MySqlLockStore to leave it at that.';
