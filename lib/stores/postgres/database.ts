import { LockError } from '../../core/errors.js';
import { ServerClock } from '../kit/server-clock.js';
import { BATCH, LATE } from './functions.js';
import { isConflict, toLockError } from './postgres-errors.js';
import { Listener, type ListeningClient } from './listener.js';
import type { ListenAddress } from './postgres-lock-store.options.js';
import type { PoolState, PostgresPool, Row } from './postgres-pool.js';
import { madeQuery, schemaSql } from './schema.js';
import { qualified } from './schema-name.js';
import { CHECK, checkNumber, checkVersion, serverWarnings } from './server-check.js';
import { runStatement } from './statement.js';
import type { Wakeups } from './wakeups.js';

/** The longest time for one operation, in milliseconds, and the least: that of a new connection. */
const OPERATION_MS = 1_000;
const LEAST_MS = 75;
/** The server's time in ms, when it has done what it was asked for. */
const NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';
/** How long the tables may take to be made, in milliseconds. */
const SCHEMA_MS = 30_000;
/** How often done marks that have run out are taken away, in milliseconds, while there are new ones. */
const TIDY_MS = 15_000;
/** How often an operation is sent that gets in the way of another. */
const MOST_TRIES = 10;

/** One database: runs operations on connections of the user's pool, each as a statement of its own, within a time. */
export class Database {
  readonly #pool: PostgresPool & PoolState;
  readonly #schema: string;
  readonly #address: ListenAddress | false | undefined;
  readonly #calls = new Map<string, string>();
  readonly #clock = new ServerClock();
  #listener: Listener | undefined;
  #tidying: NodeJS.Timeout | undefined;
  /** Whether there are done marks since the last time that they were taken away. */
  #isMarked = false;

  /** `listen` is where to listen; undefined for where the pool leads, false for nowhere. */
  constructor(pool: PostgresPool, schema: string, listen: ListenAddress | false | undefined) {
    this.#pool = pool;
    this.#schema = schema;
    this.#address = listen;
  }

  get listener(): Listener | undefined {
    return this.#listener;
  }

  /** Whether messages reach this process, as far as it knows. */
  get hears(): boolean {
    return this.#listener?.acknowledged === true;
  }

  /** Calls a function of the schema within a time, 1 s at most, and answers what it replies. Rejects with a lock error. */
  async call(name: string, args: readonly unknown[], key: string, limitMs: number): Promise<unknown> {
    return this.#call(name, args, key, bounded(limitMs));
  }

  /**
   * The same for a function that grants, which refuses to do so later than its reply is waited for: it answers
   * `LATE`. Where that comes in time, it was judged by what the server's clock had said before, and is sent once
   * more, by what it says now.
   */
  async callInTime(name: string, args: readonly unknown[], key: string, limitMs: number): Promise<unknown> {
    const mostMs = bounded(limitMs);
    const sentAt = performance.now();
    const reply = await this.#callOnceInTime(name, args, key, mostMs);
    return reply === LATE ? this.#callOnceInTime(name, args, key, sentAt + mostMs - performance.now()) : reply;
  }

  /** The same within a time, and sent once. */
  callOnceInTime(name: string, args: readonly unknown[], key: string, limitMs: number): Promise<unknown> {
    return this.#callOnceInTime(name, args, key, bounded(limitMs));
  }

  #callOnceInTime(name: string, args: readonly unknown[], key: string, limitMs: number): Promise<unknown> {
    return this.#call(name, [...args, this.#clock.latest(performance.now(), limitMs)], key, limitMs);
  }

  /** Throws `LockConfigurationError` for what no retry mends. */
  async check(warn: (message: string) => void): Promise<void> {
    if (!this.#pool.options.connectionTimeoutMillis) {
      warn(PATIENT);
    }
    const [row = {}] = await this.#run(CHECK, [this.#schema], '', OPERATION_MS);
    for (const warning of serverWarnings(row, this.#schema)) {
      warn(warning);
    }
    checkVersion(Number(await this.call('version', [], '', Infinity)), this.#schema);
  }

  /** Throws `LockConfigurationError` where other processes use this database with another number, such as `1 of 2`. */
  async checkNumber(row: string, number: string): Promise<void> {
    checkNumber(number, (await this.call('numbered', [row, number], '', Infinity)) as string | null, row, this.#schema);
  }

  /** What is there already is left alone: it needs no rights to make it, and nobody waits. */
  async ensureSchema(): Promise<void> {
    const { text, values } = madeQuery(this.#schema);
    const [row] = await this.#run(text, values, '', SCHEMA_MS);
    if (row?.['is_made'] === true) {
      return;
    }
    await this.#run(schemaSql({ schema: this.#schema }), undefined, '', SCHEMA_MS);
  }

  /** Begins to listen for messages to a process; resolves when it hears them, or it is known that it does not. */
  async listen(process: string, wakeups: Wakeups, warn: (message: string) => void): Promise<void> {
    this.close();
    this.#pool.on('error', ignore);
    if (this.#address === false) {
      return;
    }
    const told = new Set<string>();
    const warnOnce = (message: string): void => {
      if (!told.has(message)) {
        told.add(message);
        warn(message);
      }
    };
    this.#listener = new Listener(process, qualified('SCHEMA.presence($1)', this.#schema), {
      connect: () => this.#newClient(),
      notify: (channel, message) => this.#run('SELECT pg_notify($1, $2)', [channel, message], '', OPERATION_MS),
      message: (message) => wakeups.heard(message),
      changed: () => wakeups.recheck(),
      deaf: () => warnOnce(DEAF),
      // Where the pool leads, the statements fail as well, and report it.
      failed: (error) => this.#address && warnOnce(`${UNREACHED} ${error instanceof LockError ? error.detail : error.message}`),
    });
    await this.#listener.open();
  }

  /** Takes done marks away after a while. */
  tidyLater(): void {
    this.#isMarked = true;
    this.#tidying ??= setTimeout(() => void this.#tidy(), TIDY_MS).unref();
  }

  close(): void {
    this.#pool.removeListener('error', ignore);
    clearTimeout(this.#tidying);
    this.#tidying = undefined;
    this.#listener?.close();
    this.#listener = undefined;
  }

  /** Nobody waits for it, and the next time does what is left. The last marks run out after it, so there is one more. */
  async #tidy(): Promise<void> {
    const wasMarked = this.#isMarked;
    this.#isMarked = false;
    let removed: unknown;
    do {
      removed = await this.call('tidy', [], '', Infinity).catch(() => undefined);
    } while (removed === BATCH && this.#tidying);
    if (wasMarked || this.#isMarked) {
      this.#tidying?.refresh();
    } else {
      this.#tidying = undefined;
    }
  }

  #newClient(): ListeningClient {
    const Client = this.#pool.Client as new (options: object) => ListeningClient;
    const { options } = this.#pool as { options: { password?: unknown } };
    const address = this.#address || { ...options, password: options.password };
    return new Client(typeof address === 'string' ? { connectionString: address } : address);
  }

  async #call(name: string, args: readonly unknown[], key: string, limitMs: number): Promise<unknown> {
    const sentAt = performance.now();
    const [row] = await this.#run(this.#callOf(name, args.length), args, key, limitMs);
    this.#clock.read(Number(row?.['now']), sentAt);
    return JSON.parse((row?.['reply'] ?? 'null') as string);
  }

  async #run(text: string, values: readonly unknown[] | undefined, key: string, limitMs: number): Promise<readonly Row[]> {
    const giveUpAt = performance.now() + limitMs;
    let leftMs = limitMs;
    for (let tries = 1; ; tries++) {
      try {
        return await runStatement(this.#pool, text, values, leftMs);
      } catch (error) {
        leftMs = giveUpAt - performance.now();
        if (!isConflict(error) || tries >= MOST_TRIES || leftMs <= 0) {
          throw toLockError(error, key, this.#schema);
        }
      }
    }
  }

  /** The same text each time: it costs more to make than to send. */
  #callOf(name: string, count: number): string {
    let text = this.#calls.get(name);
    if (text === undefined) {
      const args = Array.from({ length: count }, (_, at) => `$${at + 1}`);
      text = qualified(`SELECT SCHEMA.${name}(${args.join(', ')}) AS reply, ${NOW} AS now`, this.#schema);
      this.#calls.set(name, text);
    }
    return text;
  }
}

function bounded(limitMs: number): number {
  return Math.min(Math.max(limitMs, LEAST_MS), OPERATION_MS);
}

const PATIENT =
  'The pool waits for ever for the connections it makes (connectionTimeoutMillis is 0). Set it, to 5000 for example: when the network ' +
  'breaks, all of them may hang for a quarter of an hour, and the locks with them.';

const UNREACHED =
  'PostgreSQL cannot be listened to at the address that is given as listen. Waiters look for their turn every 300 ms until it can:';

const DEAF =
  'PostgreSQL accepts LISTEN and delivers nothing, as behind pgbouncer in transaction mode. Waiters look for their turn every 300 ms; ' +
  'pass listen with the address of the server itself to PostgresLockStore, or listen: false.';

/** An idle connection of the pool that breaks is no reason to end the process. */
function ignore(): void {}
