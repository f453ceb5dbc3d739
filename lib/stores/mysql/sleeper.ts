import { once } from '../kit/once.js';
import type { CallbackPool, MySqlConnection, Row } from './mysql-pool.js';
import { presenceName } from './presence.js';
import { endStatement, optionsOf } from './statement.js';

/** For how long nothing is tried after a connection was not to be had, or could not be woken, in milliseconds. */
const PAUSE_MS = { failed: 1_000, unwakeable: 60_000 } as const;
/** How long the server may take to answer, beyond what it was told to sleep, in milliseconds. */
const SILENCE_MS = 2_000;
/** How often a sleep may go on because the machine is busy. */
const MOST_OVERSLEPT = 3;
/** How long the first sleep lasts that is to be ended, in milliseconds. */
const TRIAL_MS = 1_500;

/** What a sleeper needs of its database. */
export interface SleeperContext {
  readonly pool: CallbackPool;
  readonly process: string;
  readonly warn: (message: string) => void;
}

/**
 * A connection of the pool on which a process sleeps while it waits. It holds a named lock of the server, by which others find it: they end
 * its sleep by `KILL QUERY`, which every user may for its own connections. A sleep that is ended too early costs one look.
 */
export class Sleeper {
  readonly #context: SleeperContext;
  readonly #changed: () => void;
  #connection: MySqlConnection | undefined;
  #isReady = false;
  #isWanted = false;
  #isPreparing = false;
  /** Whether a sleep was ended once: it is not tried again. */
  #isWakeable = false;
  #notBefore = 0;
  /** How often in a row a sleep was not ended that should have been. */
  #overslept = 0;
  readonly #warnOnce: (message: string) => void;

  /** `changed` is called when this process can be woken from now on, and when it cannot any more. */
  constructor(context: SleeperContext, changed: () => void) {
    this.#context = context;
    this.#changed = changed;
    this.#warnOnce = once(context.warn);
  }

  /** Whether this process can be woken now. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /** Begins to make sure that this process can be woken, unless that is so, or cannot be. */
  prepare(): void {
    this.#isWanted = true;
    if (!this.#isReady && !this.#isPreparing && performance.now() >= this.#notBefore && this.#mayKeepOne()) {
      void this.#prepare();
    }
  }

  /**
   * Sleeps for `ms` milliseconds at the most, and not at all where the SQL condition `unless` is true. Resolves to whether it was ended
   * early: by another process, or by that condition.
   */
  async sleep(ms: number, unless: string): Promise<boolean> {
    const connection = this.#connection;
    if (!connection) {
      return false;
    }
    try {
      return isEnded(await this.#ask(connection, sleepFor(ms, unless), ms));
    } catch {
      this.#lose(connection);
      return false;
    }
  }

  async #prepare(): Promise<void> {
    this.#isPreparing = true;
    this.#notBefore = performance.now() + PAUSE_MS.failed;
    const connection = await this.#connect();
    if (connection && (await this.#isWoken(connection)) && this.#connection === connection) {
      this.#isReady = true;
      this.#changed();
    }
    this.#isPreparing = false;
  }

  /** Ends the connection. It is not given back: somebody may be about to end a statement on it. */
  end(): void {
    this.#isWanted = false;
    if (this.#connection) {
      this.#drop(this.#connection);
    }
  }

  /** One connection of several: the locks need another one. */
  #mayKeepOne(): boolean {
    return (this.#context.pool.config.connectionLimit ?? Infinity) > 1;
  }

  #connect(): Promise<MySqlConnection | undefined> {
    return new Promise((resolve) => {
      let isLate = false;
      const timer = setTimeout(() => {
        isLate = true;
        resolve(undefined);
      }, SILENCE_MS);
      this.#context.pool.getConnection((error, connection) => {
        clearTimeout(timer);
        if (isLate || !this.#isWanted) {
          connection?.release();
          resolve(undefined);
        } else {
          connection?.on('error', ignore);
          this.#connection = connection;
          resolve(connection);
        }
      });
    });
  }

  /** Whether a sleep on this connection can be ended by another one of the pool. */
  async #isWoken(connection: MySqlConnection): Promise<boolean> {
    try {
      const [row] = await this.#ask(
        connection,
        `SELECT get_lock('${presenceName(this.#context.process)}', 0) AS got, connection_id() AS id`,
        0,
      );
      if (this.#isWakeable) {
        return Number(row?.['got']) === 1;
      }
      const slept = this.#ask(connection, sleepFor(TRIAL_MS), TRIAL_MS);
      endStatement(this.#context.pool, { ...connection, threadId: Number(row?.['id']) }, () => false);
      if (isEnded(await slept) && Number(row?.['got']) === 1) {
        this.#isWakeable = true;
        return true;
      }
    } catch {
      this.#drop(connection);
      return false;
    }
    this.#overslept++;
    if (this.#overslept >= MOST_OVERSLEPT) {
      this.#notBefore = performance.now() + PAUSE_MS.unwakeable;
      this.#warnOnce(UNWAKEABLE);
    }
    this.#drop(connection);
    return false;
  }

  #lose(connection: MySqlConnection): void {
    if (this.#connection === connection) {
      this.#drop(connection);
      this.#changed();
    }
  }

  #drop(connection: MySqlConnection): void {
    if (this.#connection === connection) {
      this.#connection = undefined;
      this.#isReady = false;
      connection.destroy();
    }
  }

  /** The rows of the reply. Rejects where there is none in time. A sleep that was ended is answered, as a row or as an error. */
  #ask(connection: MySqlConnection, sql: string, ms: number): Promise<readonly Row[]> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => setImmediate(() => reject(new Error('no reply'))), ms + SILENCE_MS).unref();
      connection.query(optionsOf({ sql }), (error, rows) => {
        clearTimeout(timer);
        if (!error) {
          resolve(rows as readonly Row[]);
        } else if ('errno' in error && error.errno === INTERRUPTED) {
          resolve([]);
        } else {
          reject(error);
        }
      });
    });
  }
}

/** What the server answers where `KILL QUERY` ended the statement. */
const INTERRUPTED = 1317;

const UNWAKEABLE =
  'MySQL does not let one connection of the pool end the sleep of another one by KILL QUERY, as behind some proxies. Waiters look for their ' +
  'turn every 50 ms; pass { poll: true } to MySqlLockStore to leave it at that.';

function sleepFor(ms: number, unless = 'FALSE'): string {
  return `SELECT CASE WHEN ${unless} THEN 1 ELSE sleep(${Math.max(1, Math.ceil(ms)) / 1_000}) END AS slept`;
}

/** Whether a sleep was ended early. It answers 1 then, or fails, which `#ask` answers with no row. */
function isEnded([row]: readonly Row[]): boolean {
  return Number(row?.['slept'] ?? 1) === 1;
}

/** The next statement fails as well. */
function ignore(): void {}
