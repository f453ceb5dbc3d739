import { LockError, LockStoreError } from '../../core/words/errors.js';
import type { StoredLock } from '../../core/seam/lock-store.js';
import { readStored } from '../kit/replies.js';
import { probe, PROBE_MS, type Probe } from '../kit/probe.js';
import type { Listeners } from '../kit/listeners.js';
import { once } from '../kit/once.js';
import { Tidying } from '../kit/tidying.js';
import { BATCH, NUMBERED, TIDY } from './functions/upkeep.js';
import { RECHECK_MS } from '../kit/protocol.js';
import { Calls } from './calls.js';
import { NOW, type Call } from './statements.js';
import type { ListeningClient } from './listen-connection.js';
import { channelOf, Listener } from './listener.js';
import { MessageParts, partsOf } from './message-parts.js';
import type { PostgresKeys } from './postgres-keys.js';
import type { ListenAddress } from './postgres-lock-store.options.js';
import type { PoolState, PostgresPool, Row } from './postgres-pool.js';
import { madeQuery, schemaSql } from './schema.js';
import { qualified } from './schema-name.js';
import { CHECK, checkNumber, checkVersion, serverWarnings } from './server-check.js';

/** The limits of what is run at the start, in milliseconds: of a query, of the check, and of making the tables. */
const START_MS = { query: 1_000, check: 3_000, schema: 30_000 } as const;

/** What a database is opened with. */
export interface DatabaseOptions {
  /** The name of the store instance, to which messages are sent. */
  readonly process: string;
  readonly keys: PostgresKeys;
  /** Which of several databases this is, such as `1 of 2`. */
  readonly number: string;
  /** Where messages go. */
  readonly listeners: Listeners;
  readonly warn: (message: string) => void;
  /** Whether nothing is written at the start. */
  readonly readOnly: boolean;
}

/** One database with locks: its schema, its listener, and the calls of its functions. */
export class Database {
  readonly calls: Calls;
  readonly tidying: Tidying;
  /** The same calls, before and during the check. */
  readonly #unchecked: Calls;
  readonly #pool: PostgresPool & PoolState;
  readonly #schema: string;
  readonly #address: ListenAddress | false | undefined;
  #listener: Listener | undefined;
  readonly #parts = new MessageParts();
  /** What operations have to pass first, because the database was away when it was opened. */
  #check: ((key: string, limitMs: number) => Promise<void>) | undefined;

  /** `listen` is where to listen; undefined for where the pool leads, false for nowhere. */
  constructor(pool: PostgresPool, schema: string, listen: ListenAddress | false | undefined) {
    this.#pool = pool;
    this.#schema = schema;
    this.#address = listen;
    this.#unchecked = new Calls(pool, schema);
    this.calls = new Calls(pool, schema, (key, limitMs) => this.#check?.(key, limitMs));
    this.tidying = new Tidying(async () => (await this.calls.call(TIDY, {}, { key: '', limitMs: Infinity })) === BATCH);
  }

  /** Undefined where it does not listen. */
  get listener(): Listener | undefined {
    return this.#listener;
  }

  /**
   * Checks what no retry mends, and begins to listen for the messages to a process. Rejects with
   * `LockConfigurationError`. A database that is away is worth a warning, and is checked by the first operation that
   * reaches it.
   */
  async open(given: DatabaseOptions): Promise<void> {
    const options = { ...given, warn: once(given.warn) };
    this.#check = (key, limitMs) => this.#pass(options, key, limitMs);
    if (!this.#pool.options.connectionTimeoutMillis) {
      options.warn(NO_CONNECTION_TIMEOUT);
    }
    try {
      await this.#pass(options, '', START_MS.check);
    } catch (error) {
      if (!(error instanceof LockStoreError)) {
        throw error;
      }
      options.warn(`${error.detail} Locked calls fail until then.`);
    }
    await this.#listen(options);
  }

  /** Asks what the server's clock reads. */
  probe(): Promise<Probe> {
    return probe(async () => {
      const [row] = await this.#unchecked.run(`SELECT ${NOW} AS now`, [], { key: '', limitMs: PROBE_MS });
      return Number(row?.['now']);
    });
  }

  /** Sends a text to a process, or to all where there is none. */
  async send(text: string, keys: PostgresKeys, process: string | undefined): Promise<void> {
    const channel = process === undefined ? keys.everybody(this.#schema) : channelOf(process);
    const limits = { key: '', limitMs: START_MS.query };
    await this.#unchecked.run('SELECT pg_notify($1, part) FROM unnest($2::text[]) AS part', [channel, partsOf(text)], limits);
  }

  /** The rows of locks that are held, after the row `after` and before the row `before`: 1,000 at most, in order. */
  async heldRows(after: string, before: string): Promise<readonly { readonly row: string; readonly stored: StoredLock }[]> {
    const rows = await this.calls.run(qualified(HELD_ROWS, this.#schema), [after, before], { key: '', limitMs: SEARCH_MS });
    return rows.flatMap(({ key, stored }) => {
      const lock = readStored(typeof stored === 'string' ? JSON.parse(stored) : stored);
      return lock ? [{ row: String(key), stored: lock }] : [];
    });
  }

  /** Whether messages of turns arrive; undefined where the store was told not to listen. */
  get hearsTurns(): boolean | undefined {
    return this.#address === false ? undefined : this.#listener?.acknowledged === true;
  }

  /** Leaves alone what is there already: that needs no right to make it, and no operation waits. */
  async ensureSchema(): Promise<void> {
    const limits = { key: '', limitMs: START_MS.schema };
    const { text, values } = madeQuery(this.#schema);
    const [row] = await this.#unchecked.run(text, values, limits);
    if (row?.['is_made'] !== true) {
      await this.#unchecked.run(schemaSql({ schema: this.#schema }), undefined, limits);
    }
  }

  close(): void {
    this.#pool.removeListener('error', ignore);
    this.tidying.stop();
    this.#listener?.close();
    this.#listener = undefined;
  }

  /** Checks the server, the version of the schema and the number of the database. Operations do without from then on. */
  async #pass({ keys, number, readOnly, warn }: DatabaseOptions, key: string, limitMs: number): Promise<void> {
    const giveUpAt = performance.now() + limitMs;
    const call = (): Call => ({ key, limitMs: Math.min(START_MS.query, Math.max(0, giveUpAt - performance.now())) });
    const [row = {}] = await this.#unchecked.run(CHECK, [this.#schema], call());
    serverWarnings(row, this.#schema).forEach(warn);
    const [{ version } = {} as Row] = await this.#unchecked.run(qualified('SELECT SCHEMA.version() AS version', this.#schema), [], call());
    checkVersion(Number(version), this.#schema);
    if (!readOnly) {
      const known = await this.#unchecked.call(NUMBERED, { key: keys.numberRow, number }, call());
      checkNumber(number, known as string | null, keys.numberRow, this.#schema);
    }
    this.#check = undefined;
  }

  /** Resolves when messages arrive, or are known not to. */
  async #listen({ process, keys, listeners, warn }: DatabaseOptions): Promise<void> {
    this.close();
    this.#pool.on('error', ignore);
    if (this.#address === false) {
      return;
    }
    this.#listener = new Listener(process, keys.everybody(this.#schema), qualified('SCHEMA.presence($1)', this.#schema), {
      connect: () => this.#newClient(),
      notify: (...message) => this.#unchecked.run('SELECT pg_notify($1, $2)', message, { key: '', limitMs: START_MS.query }),
      received: (message) => this.#received(message, keys, listeners),
      changed: () => listeners.recheck(),
      undelivered: () => warn(UNDELIVERED),
      // Where the pool leads, the statements fail as well, and report it.
      failed: (error) => this.#address && warn(`${UNREACHED} ${error instanceof LockError ? error.detail : error.message}`),
    });
    await this.#listener.open();
  }

  #received(message: string, keys: PostgresKeys, listeners: Listeners): void {
    if (message.startsWith('note ')) {
      const text = this.#parts.take(message);
      if (text !== undefined) {
        listeners.message(text);
      }
    } else {
      listeners.receive(message, (row) => keys.key(row));
    }
  }

  #newClient(): ListeningClient {
    const Client = this.#pool.Client as new (options: object) => ListeningClient;
    const { options } = this.#pool as { options: { password?: unknown } };
    // The pool hides its password from those who copy its options.
    const address = this.#address || { ...options, password: options.password };
    return new Client(typeof address === 'string' ? { connectionString: address } : address);
  }
}

/** How long one step of a search may take, in milliseconds. */
const SEARCH_MS = 2_000;

/** Keys have the collation of C, so that those of one prefix stand together. */
const HELD_ROWS = `SELECT key, SCHEMA.inspect(key) AS stored FROM SCHEMA.lease
WHERE key > $1 AND key < $2 AND owner IS NOT NULL AND ends > clock_timestamp() ORDER BY key LIMIT 1000`;

const NO_CONNECTION_TIMEOUT =
  'The pool waits for ever for the connections it makes (connectionTimeoutMillis is 0). Set it, to 5000 for example: when the network ' +
  'breaks, all of them may hang for a quarter of an hour, and the locks with them.';

const UNREACHED =
  'PostgreSQL cannot be listened to at the address that is given as listen. ' +
  `Waiters poll every ${RECHECK_MS.soon} ms until it can be reached:`;

const UNDELIVERED =
  'PostgreSQL accepts LISTEN and delivers nothing, as behind pgbouncer in transaction mode. ' +
  `Waiters poll every ${RECHECK_MS.soon} ms; pass listen with the address of the server itself to PostgresLockStore, or listen: false.`;

/** An idle connection of the pool that breaks is no reason to end the process. */
function ignore(): void {}
