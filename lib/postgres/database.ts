import { isConflict, NotSent, toLockError } from './postgres-errors.js';
import { Listener, type ListeningClient } from './listener.js';
import type { ListenAddress } from './postgres-lock-store.options.js';
import type { PoolState, PostgresClient, PostgresPool, PostgresQuery, PostgresResult } from './postgres-pool.js';
import { qualified, schemaSql } from './schema.js';
import { CHECK, checkVersion, serverWarnings } from './server-check.js';
import { send } from './statement.js';
import type { Wakeups } from './wakeups.js';

/** The longest time for one operation, in milliseconds; with a lease, a quarter of its ttl, and at least the time of a new connection. */
const OPERATION_MS = 1_000;
const LEAST_MS = 75;
/** How long the tables may take to be made, in milliseconds. */
const SCHEMA_MS = 30_000;
/** How often done marks that have run out are taken away, in milliseconds, while there are new ones. */
const TIDY_MS = 15_000;
/** How often an operation is sent that gets in the way of another. */
const MOST_TRIES = 10;

/** Texts as the server sends them: the application may have set parsers of its own. */
const TEXTS: PostgresQuery['types'] = { getTypeParser: () => (value) => value };

/** One database: runs operations on connections of the user's pool, each as a statement of its own, within a time. */
export class Database {
  readonly #pool: PostgresPool & PoolState;
  readonly #schema: string;
  readonly #address: ListenAddress | false | undefined;
  #listener: Listener | undefined;
  #tidying: NodeJS.Timeout | undefined;

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

  /** Calls a function of the schema within a quarter of the ttl or 1 s, and answers what it replies. Rejects with a lock error. */
  async call(name: string, args: readonly unknown[], key: string, ttlMs: number): Promise<unknown> {
    const text = `SELECT SCHEMA.${name}(${args.map((_, at) => `$${at + 1}`).join(', ')})`;
    const [row] = await this.#run(text, args, key, Math.min(Math.max(ttlMs / 4, LEAST_MS), OPERATION_MS));
    return JSON.parse(row?.[0] ?? 'null');
  }

  /** Throws `LockConfigurationError` for what no retry mends. */
  async check(warn: (message: string) => void): Promise<void> {
    const [row = []] = await this.#run(CHECK, [this.#schema], '', OPERATION_MS);
    for (const warning of serverWarnings(row, this.#schema)) {
      warn(warning);
    }
    checkVersion(Number(await this.call('version', [], '', Infinity)), this.#schema);
  }

  async ensureSchema(): Promise<void> {
    await this.#run(schemaSql({ schema: this.#schema }), undefined, '', SCHEMA_MS);
  }

  /** Begins to listen for messages to a process; resolves when it hears them, or it is known that it does not. */
  async listen(process: string, wakeups: Wakeups, warn: (message: string) => void): Promise<void> {
    this.close();
    this.#pool.on('error', ignore);
    if (this.#address === false) {
      return;
    }
    let told = false;
    this.#listener = new Listener(process, qualified('SCHEMA.presence($1)', this.#schema), {
      connect: () => this.#newClient(),
      notify: (channel, message) => this.#run('SELECT pg_notify($1, $2)', [channel, message], '', OPERATION_MS),
      message: (message) => wakeups.heard(message),
      changed: () => wakeups.recheck(),
      deaf: () => {
        if (!told) {
          warn(DEAF);
        }
        told = true;
      },
    });
    await this.#listener.open();
  }

  /** Takes done marks away after a while. */
  tidyLater(): void {
    this.#tidying ??= setTimeout(() => {
      this.#tidying = undefined;
      // Nobody waits for it, and the next one does what is left.
      this.call('tidy', [], '', Infinity).catch(() => undefined);
    }, TIDY_MS).unref();
  }

  close(): void {
    this.#pool.removeListener('error', ignore);
    clearTimeout(this.#tidying);
    this.#tidying = undefined;
    this.#listener?.close();
    this.#listener = undefined;
  }

  #newClient(): ListeningClient {
    const Client = this.#pool.Client as new (options: object) => ListeningClient;
    const { options } = this.#pool as { options: { password?: unknown } };
    const address = this.#address || { ...options, password: options.password };
    return new Client(typeof address === 'string' ? { connectionString: address } : address);
  }

  async #run(text: string, values: readonly unknown[] | undefined, key: string, limitMs: number): Promise<PostgresResult['rows']> {
    const giveUpAt = performance.now() + limitMs;
    const query: PostgresQuery = { text: qualified(text, this.#schema), ...(values && { values }), rowMode: 'array', types: TEXTS };
    for (let tries = 1; ; tries++) {
      try {
        const client = await this.#connect(giveUpAt, limitMs);
        return await send(client, query, giveUpAt - performance.now(), Math.max(limitMs, OPERATION_MS));
      } catch (error) {
        if (!isConflict(error) || tries >= MOST_TRIES || performance.now() >= giveUpAt) {
          throw toLockError(error, key, this.#schema);
        }
      }
    }
  }

  async #connect(giveUpAt: number, limitMs: number): Promise<PostgresClient> {
    for (;;) {
      const client = await this.#take(giveUpAt - performance.now(), limitMs);
      // Whoever had it before gave it back in the middle of a transaction. What is granted there, nobody else would see.
      const status = client.getTransactionStatus?.() ?? 'I';
      if (status === 'I') {
        return client;
      }
      client.release(true);
    }
  }

  #take(ms: number, limitMs: number): Promise<PostgresClient> {
    return new Promise((resolve, reject) => {
      let late = false;
      const timer = setTimeout(() => {
        late = true;
        reject(new NotSent(this.#whyNone(limitMs)));
      }, ms);
      this.#pool.connect().then(
        (connected) => {
          clearTimeout(timer);
          const client = connected as PostgresClient;
          if (late) {
            client.release();
          } else {
            resolve(client);
          }
        },
        (error: Error) => {
          clearTimeout(timer);
          reject(new NotSent(error.message, error));
        },
      );
    });
  }

  #whyNone(limitMs: number): string {
    const { options, totalCount = 0, idleCount = 0 } = this.#pool;
    const { max = Infinity } = options;
    return totalCount >= max && idleCount === 0
      ? `all ${max} connections of the pool have been in use for ${Math.round(limitMs)} ms; raise its max, or give the locks a pool of their own`
      : `none could be made within ${Math.round(limitMs)} ms`;
  }
}

const DEAF =
  'PostgreSQL accepts LISTEN and delivers nothing, as behind pgbouncer in transaction mode. Waiters look for their turn every 300 ms; ' +
  'pass listen with the address of the server itself to PostgresLockStore, or listen: false.';

/** An idle connection of the pool that breaks is no reason to end the process. */
function ignore(): void {}
