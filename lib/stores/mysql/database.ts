import { LockStoreError } from '../../core/words/errors.js';
import type { Listeners } from '../kit/listeners.js';
import { once } from '../kit/once.js';
import { probe, PROBE_MS, type Probe } from '../kit/probe.js';
import { ServerClock } from '../kit/server-clock.js';
import { Tidying } from '../kit/tidying.js';
import { Calls, type Call } from './calls.js';
import type { CheckedPool } from './mysql-lock-store.options.js';
import { toLockError } from './mysql-errors.js';
import type { MySqlKeys } from './mysql-keys.js';
import type { CallbackPool, Row } from './mysql-pool.js';
import { onOneConnection, type Run } from './one-connection.js';
import { NOW } from './procedures/time.js';
import { BATCH, NUMBERED, TIDY } from './procedures/upkeep.js';
import { numberOf, showing, textOf } from './rows.js';
import { creations, setMode, SQL_MODE } from './schema.js';
import { checkSchema, COLUMNS_FOUND, PROCEDURES_FOUND, readSchema, strangeMode, type FoundSchema } from './schema-found.js';
import { CHECK, checkNumber, serverWarnings } from './server-check.js';
import { NAMES, qualified } from './tables.js';
import { leaseTable, TurnWatch } from './turn-watch.js';

/** The limits of what is run at the start, in milliseconds. */
const LIMIT_MS = { query: 1_000, check: 3_000, schema: 30_000 } as const;
/** How long one waits who creates the schema, for others who do, and for calls of what is to be dropped, in seconds. */
const LOCK_WAIT_S = 10;
/** What the server answers where a procedure is there already. */
const ALREADY_THERE = 'ER_SP_ALREADY_EXISTS';

/** What a database is opened with. */
export interface DatabaseOptions {
  /** The name of the store instance. */
  readonly process: string;
  readonly keys: MySqlKeys;
  /** Which of several databases this is, such as `1 of 2`. */
  readonly number: string;
  /** Who is notified of turns. */
  readonly listeners: Listeners;
  readonly warn: (message: string) => void;
  /** Whether nothing is written at the start. */
  readonly readOnly: boolean;
}

/** One database with locks: its tables, the calls of its procedures, and the watch for turns. */
export class Database {
  readonly calls: Calls;
  readonly tidying: Tidying;
  /** The table of locks. */
  readonly table: string;
  /** The same calls, before and during the check. */
  readonly #unchecked: Calls;
  readonly #pool: CallbackPool;
  readonly #name: string;
  readonly #polls: boolean;
  #watch: TurnWatch | undefined;
  /** What operations have to pass first, because the database was away when it was opened. */
  #check: ((key: string, limitMs: number) => Promise<void>) | undefined;
  /** The done marks before this time are deleted, in µs since 1970. */
  #tidiedUntil = 0;

  constructor({ pool, database }: CheckedPool, polls: boolean) {
    this.#pool = pool;
    this.#name = database;
    this.table = leaseTable(database);
    this.#polls = polls;
    const clock = new ServerClock();
    this.#unchecked = new Calls(pool, database, clock);
    this.calls = new Calls(pool, database, clock, (key, limitMs) => this.#check?.(key, limitMs));
    this.tidying = new Tidying(() => this.#tidySome());
  }

  /** Undefined before it is opened. */
  get watch(): TurnWatch | undefined {
    return this.#watch;
  }

  /** A process listens while it waits, and not otherwise. */
  get hearsTurns(): undefined {
    return undefined;
  }

  /**
   * Checks what no retry mends. Rejects with `LockConfigurationError`. A database that is away is worth a warning, and is checked by the
   * first operation that reaches it.
   */
  async open(given: DatabaseOptions): Promise<void> {
    this.close();
    const { process, keys, listeners, number, readOnly } = given;
    const warn = once(given.warn);
    this.#check = (key, limitMs) => this.#pass(keys, number, readOnly, warn, key, limitMs);
    try {
      await this.#pass(keys, number, readOnly, warn, '', LIMIT_MS.check);
    } catch (error) {
      if (!(error instanceof LockStoreError)) {
        throw error;
      }
      warn(`${error.detail} Locked calls fail until then.`);
    }
    this.#watch = new TurnWatch({
      pool: this.#pool,
      table: this.table,
      process,
      keys,
      listeners,
      polls: this.#polls,
      run: (sql) => this.#unchecked.run({ sql }, { key: '', limitMs: LIMIT_MS.query }),
      warn,
    });
  }

  /** Asks what the server's clock reads. */
  probe(): Promise<Probe> {
    return probe(async () => {
      const [row] = await this.#unchecked.run({ sql: `SELECT ${NOW} AS now_us` }, { key: '', limitMs: PROBE_MS });
      return Number(row?.['now_us']) / 1_000;
    });
  }

  /** The rows of locks that are held, for a condition on their names: 1,000 at most, in their order. */
  shown(condition: string, values: readonly Buffer[], call: Call): Promise<readonly Row[]> {
    return this.calls.run({ sql: showing(condition, this.#name), values }, call);
  }

  /** Leaves alone what is there already: that needs no right to make it. */
  async ensureSchema(): Promise<void> {
    const { isWhole } = await this.#found((statement) => this.#unchecked.run(statement, { key: '', limitMs: LIMIT_MS.schema }));
    if (!isWhole) {
      await onOneConnection(this.#pool, LIMIT_MS.schema, (run) => this.#create(run)).catch((error: unknown) => {
        throw toLockError(error, '');
      });
    }
  }

  close(): void {
    this.tidying.stop();
    this.#watch?.close();
    this.#watch = undefined;
  }

  /** Checks the server, the schema and the number of the database. Operations do without from then on. */
  async #pass(
    keys: MySqlKeys,
    number: string,
    readOnly: boolean,
    warn: (message: string) => void,
    key: string,
    limitMs: number,
  ): Promise<void> {
    const giveUpAt = performance.now() + limitMs;
    const call = (): Call => ({ key, limitMs: Math.min(LIMIT_MS.query, Math.max(0, giveUpAt - performance.now())) });
    const [row = {}] = await this.#unchecked.run({ sql: CHECK }, call());
    serverWarnings(row).forEach(warn);
    checkSchema(await this.#found((statement) => this.#unchecked.run(statement, call())), this.#name);
    if (!readOnly) {
      const args = { key: keys.numberRow, number: Buffer.from(number) };
      const { known } = await this.#unchecked.call(NUMBERED, args, call());
      checkNumber(number, known === null ? undefined : textOf(known), keys.numberRow, this.table);
    }
    this.#check = undefined;
  }

  async #found(run: Run): Promise<FoundSchema> {
    const values = [this.#name];
    return readSchema(await run({ sql: PROCEDURES_FOUND, values }), await run({ sql: COLUMNS_FOUND, values }), this.#name);
  }

  /** Creates what is missing, one process after the other: what one has created must not be dropped by the next one. */
  async #create(run: Run): Promise<void> {
    // The last user of the connection may have left a transaction open. A server without named locks does without.
    await run({ sql: 'ROLLBACK' });
    await run({ sql: setMode(`'${SQL_MODE}'`) });
    await run({ sql: `SET SESSION lock_wait_timeout = ${LOCK_WAIT_S}` });
    await run({ sql: `SELECT get_lock('${NAMES}schema', ${LOCK_WAIT_S})` }).catch(() => undefined);
    const { isWhole, strange, mode } = await this.#found(run);
    for (const name of strange) {
      await run({ sql: `DROP PROCEDURE ${qualified(name, this.#name)}` }).catch((error: unknown) => {
        throw strangeMode(mode, this.#name, toLockError(error, ''));
      });
    }
    for (const sql of isWhole ? [] : creations(this.#name)) {
      await run({ sql }).catch((error: unknown) => {
        // Somebody makes them by hand at the same time.
        if ((error as { code?: unknown }).code !== ALREADY_THERE) {
          throw error;
        }
      });
    }
  }

  /** Whether there may be more. */
  async #tidySome(): Promise<boolean> {
    const row = await this.calls.call(TIDY, { after: this.#tidiedUntil }, { key: '', limitMs: Infinity });
    this.#tidiedUntil = row['last_us'] === null ? this.#tidiedUntil : numberOf(row, 'last_us', '');
    return numberOf(row, 'removed', '') >= BATCH;
  }
}
