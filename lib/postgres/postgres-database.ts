import { LockError } from '../core/words/errors.js';
import type { Listeners } from '../kit/listeners.js';
import type { ProbeAnswer } from '../kit/probe.js';
import { RECHECK_MS } from '../kit/protocol.js';
import { Database, START_MS, type DatabaseOptions, type HeldRow } from '../sql/database.js';
import type { StatementLimit } from '../sql/statements.js';
import { OPERATIONS } from './functions.js';
import { readLock } from './functions/operator.js';
import { BATCH } from './functions/upkeep.js';
import type { ListeningClient } from './listening/listen-connection.js';
import { Listener } from './listening/listener.js';
import { MessageParts } from './listening/message-parts.js';
import { NOW, PostgresDialect } from './postgres-dialect.js';
import type { PostgresKeys } from './postgres-keys.js';
import type { ListenAddress } from './postgres-lock-store.options.js';
import type { PoolState, PostgresPool } from './postgres-pool.js';
import { madeQuery, schemaSql } from './schema.js';
import { qualified } from './schema-name.js';
import { CHECK, checkVersion, PRODUCT, productBy, serverWarnings } from './server-check.js';

/** One database with locks: its schema, its listener, and the calls of its functions. */
export class PostgresDatabase extends Database<PostgresKeys, Listener> {
  readonly schema: string;
  readonly #pool: PostgresPool & PoolState;
  readonly #address: ListenAddress | false | undefined;
  readonly #parts = new MessageParts();
  /** Of its own: other stores may listen to the same pool. */
  readonly #ignore = (): void => undefined;

  /** `listen` is where to listen; undefined for where the pool leads, false for nowhere. */
  constructor(pool: PostgresPool, schema: string, listen: ListenAddress | false | undefined) {
    super(new PostgresDialect(pool, schema), OPERATIONS);
    this.#pool = pool;
    this.schema = schema;
    this.#address = listen;
  }

  get hearsTurns(): boolean | undefined {
    return this.#address === false ? undefined : this.notifier?.acknowledged === true;
  }

  async heldRows(after: string, before: string, limit: StatementLimit): Promise<readonly HeldRow[]> {
    const rows = await this.calls.run({ sql: qualified(HELD_ROWS, this.schema), values: [after, before] }, limit);
    return rows.flatMap(({ key, stored }) => {
      const lock = readLock(typeof stored === 'string' ? JSON.parse(stored) : stored);
      return lock ? [{ row: String(key), stored: lock }] : [];
    });
  }

  async ensureSchema(): Promise<void> {
    const limit = { key: '', limitMs: START_MS.schema };
    const [row] = await this.calls.run(madeQuery(this.schema), limit);
    if (row?.['is_made'] !== true) {
      await this.calls.run({ sql: schemaSql({ schema: this.schema }) }, limit);
    }
  }

  override close(): void {
    this.#pool.removeListener('error', this.#ignore);
    super.close();
  }

  protected async askState(limit: StatementLimit): Promise<ProbeAnswer> {
    const [row] = await this.calls.run(
      { sql: `SELECT ${NOW} AS now, current_setting('transaction_read_only', true) AS read_only, ${PRODUCT}`, values: [] },
      limit,
    );
    return {
      serverMs: Number(row?.['now']),
      server: row && productBy(row)?.name,
      refuses: row?.['read_only'] === 'on' ? 'readOnly' : undefined,
    };
  }

  protected async checkServer(warn: (message: string) => void, limit: () => StatementLimit): Promise<void> {
    if (!this.#pool.options.connectionTimeoutMillis) {
      warn(NO_CONNECTION_TIMEOUT);
    }
    // By itself: another product may not understand the rest.
    const [product = {}] = await this.calls.run({ sql: `SELECT ${PRODUCT}`, values: [] }, limit());
    const { warning } = productBy(product) ?? {};
    if (warning !== undefined) {
      warn(warning);
    }
    const [row = {}] = await this.calls.run({ sql: CHECK, values: [this.schema] }, limit());
    serverWarnings(row, this.schema).forEach(warn);
    const [made] = await this.calls.run({ sql: qualified('SELECT SCHEMA.version() AS version', this.schema), values: [] }, limit());
    checkVersion(Number(made?.['version']), this.schema);
  }

  protected forgetting(row: string): string {
    return `DELETE FROM "${this.schema}".lease WHERE key = '${row}'`;
  }

  protected async tidySome(): Promise<boolean> {
    return (await this.calls.call(OPERATIONS.TIDY, {}, { key: '', limitMs: Infinity })) === BATCH;
  }

  protected newNotifier({ process, keys, listeners, warn }: DatabaseOptions<PostgresKeys>): Listener | undefined {
    this.#pool.on('error', this.#ignore);
    if (this.#address === false) {
      return undefined;
    }
    return new Listener(process, keys.everybody(this.schema), qualified('SCHEMA.presence($1)', this.schema), {
      connect: () => this.#newClient(),
      notify: (...message) => this.calls.run({ sql: 'SELECT pg_notify($1, $2)', values: message }, { key: '', limitMs: START_MS.query }),
      received: (message) => this.#received(message, keys, listeners),
      changed: () => listeners.recheck(),
      undelivered: () => warn(UNDELIVERED),
      // Where the pool leads, the statements fail as well, and report it.
      failed: (error) => this.#address && warn(`${UNREACHED} ${error instanceof LockError ? error.detail : error.message}`),
    });
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
    // The pool hides its password from code that copies its options.
    const address = this.#address || { ...options, password: options.password };
    return new Client(typeof address === 'string' ? { connectionString: address } : address);
  }
}

/** Keys have the collation of C, so that the keys of one prefix stand together. */
const HELD_ROWS = `SELECT key, stored FROM SCHEMA.lease, LATERAL SCHEMA.inspect(key) AS stored
WHERE key > $1 AND key < $2 AND owner IS NOT NULL AND ends > clock_timestamp() AND stored IS NOT NULL ORDER BY key LIMIT 1000`;

const NO_CONNECTION_TIMEOUT =
  'The pool waits for ever for the connections it makes (connectionTimeoutMillis is 0). Set it, to 5000 for example: when the network ' +
  'breaks, all of them may hang for a quarter of an hour, and the locks with them.';

const UNREACHED =
  'PostgreSQL cannot be listened to at the address that is given as listen. ' +
  `Waiters poll every ${RECHECK_MS.soon} ms until it can be reached:`;

const UNDELIVERED =
  'PostgreSQL accepts LISTEN and delivers nothing, as behind pgbouncer in transaction mode. ' +
  `Waiters poll every ${RECHECK_MS.soon} ms; pass listen with the address of the server itself to PostgresLockStore, or listen: false.`;
