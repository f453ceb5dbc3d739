import { Database, START_MS, type DatabaseOptions, type HeldRow } from '../sql/database.js';
import type { Row } from '../sql/dialect.js';
import { toLockError } from '../sql/errors.js';
import type { ProbeAnswer } from '../kit/probe.js';
import type { StatementLimit } from '../sql/statements.js';
import { MySqlDialect } from './mysql-dialect.js';
import type { MySqlKeys } from './mysql-keys.js';
import type { CheckedPool } from './mysql-lock-store.options.js';
import type { CallbackPool } from './mysql-pool.js';
import { onOneConnection, type Run } from './connections/connection.js';
import { BATCH } from './procedures/upkeep.js';
import { readShown, showing } from './rows.js';
import { creations, OPERATIONS, setMode, SQL_MODE } from './schema.js';
import { checkSchema, COLUMNS_FOUND, PROCEDURES_FOUND, readSchema, strangeMode, type FoundSchema } from './schema-found.js';
import { AURORA, CHECK, IS_READ_ONLY, productBy, serverWarnings } from './server-check.js';
import { LEASE, NAMES, qualified, ROLLBACK, SHOWN_CLOCK } from './tables.js';
import { TurnWatch } from './connections/turn-watch.js';

/**
 * How long a process that creates the schema waits for others that create it, and for calls of procedures that are to
 * be dropped, in seconds.
 */
const LOCK_WAIT_S = 10;
/** The error of the server where a procedure is there already. */
const ALREADY_THERE = 'ER_SP_ALREADY_EXISTS';

/** One database with locks: its tables, the calls of its procedures, and the watch for turns. */
export class MySqlDatabase extends Database<MySqlKeys, TurnWatch> {
  /** The table of locks. */
  readonly table: string;
  readonly #pool: CallbackPool;
  readonly #name: string;
  readonly #polls: boolean;
  /** The done marks before this time are deleted, in µs since 1970. */
  #tidiedUntil = 0;
  /** Undefined before the check. */
  #isAurora: boolean | undefined;

  constructor({ pool, database }: CheckedPool, polls: boolean) {
    super(new MySqlDialect(pool, database), OPERATIONS);
    this.#pool = pool;
    this.#name = database;
    this.table = qualified(LEASE, database);
    this.#polls = polls;
  }

  /** A process listens while it waits, and not otherwise. */
  get hearsTurns(): undefined {
    return undefined;
  }

  /** The rows of locks that are held, for a condition on their names: 1,000 at most, in their order. */
  shown(condition: string, values: readonly Buffer[], limit: StatementLimit): Promise<readonly Row[]> {
    return this.calls.run({ sql: showing(condition, this.table), values }, limit);
  }

  async heldRows(after: Buffer, before: Buffer, limit: StatementLimit): Promise<readonly HeldRow[]> {
    const rows = await this.shown('name > ? AND name < ?', [after, before], limit);
    return rows.map((row) => ({ row: row['name'] as Buffer, stored: readShown(row) }));
  }

  async ensureSchema(): Promise<void> {
    const { isWhole } = await this.#found((statement) => this.calls.run(statement, { key: '', limitMs: START_MS.schema }));
    if (!isWhole) {
      await onOneConnection(this.#pool, START_MS.schema, (run) => this.#create(run)).catch((error: unknown) => {
        throw toLockError(error, '', this.dialect);
      });
    }
  }

  protected async askState(limit: StatementLimit): Promise<ProbeAnswer> {
    const [row] = await this.calls.run(
      { sql: `SELECT ${SHOWN_CLOCK} AS now_us, ${IS_READ_ONLY} AS read_only, version() AS version LIMIT 1` },
      limit,
    );
    const server = this.#isAurora === undefined ? undefined : productBy(String(row?.['version']), this.#isAurora)?.name;
    return { serverMs: Number(row?.['now_us']) / 1_000, server, refuses: Number(row?.['read_only']) === 1 ? 'readOnly' : undefined };
  }

  protected async checkServer(warn: (message: string) => void, limit: () => StatementLimit): Promise<void> {
    const isAurora = (await this.calls.run({ sql: AURORA }, limit())).length > 0;
    this.#isAurora = isAurora;
    const [row = {}] = await this.calls.run({ sql: CHECK }, limit());
    const { warning } = productBy(String(row['version']), isAurora) ?? {};
    if (warning !== undefined) {
      warn(warning);
    }
    serverWarnings(row).forEach(warn);
    checkSchema(await this.#found((statement) => this.calls.run(statement, limit())), this.#name);
  }

  protected forgetting(row: Buffer): string {
    return `DELETE FROM ${this.table} WHERE name = '${row.toString()}'`;
  }

  protected async tidySome(): Promise<boolean> {
    const { removed, until } = await this.calls.call(OPERATIONS.TIDY, { after: this.#tidiedUntil }, { key: '', limitMs: Infinity });
    this.#tidiedUntil = until;
    return removed >= BATCH;
  }

  protected newNotifier(options: DatabaseOptions<MySqlKeys>): TurnWatch {
    const run = (sql: string): Promise<readonly Row[]> => this.calls.run({ sql }, { key: '', limitMs: START_MS.query });
    return new TurnWatch({ ...options, pool: this.#pool, table: this.table, polls: this.#polls, run });
  }

  async #found(run: Run): Promise<FoundSchema> {
    const values = [this.#name];
    return readSchema(await run({ sql: PROCEDURES_FOUND, values }), await run({ sql: COLUMNS_FOUND, values }), this.#name);
  }

  /**
   * Creates the missing parts, one process after the other: a part that one process has created must not be dropped by
   * the next.
   */
  async #create(run: Run): Promise<void> {
    // The last user of the connection may have left a transaction open. A server without named locks does without.
    await run({ sql: ROLLBACK });
    await run({ sql: setMode(`'${SQL_MODE}'`) });
    await run({ sql: `SET SESSION lock_wait_timeout = ${LOCK_WAIT_S}` });
    await run({ sql: `SELECT get_lock('${NAMES}schema', ${LOCK_WAIT_S})` }).catch(() => undefined);
    const { isWhole, strange, mode } = await this.#found(run);
    for (const name of strange) {
      await run({ sql: `DROP PROCEDURE ${qualified(name, this.#name)}` }).catch((error: unknown) => {
        throw strangeMode(mode, this.#name, toLockError(error, '', this.dialect));
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
}
