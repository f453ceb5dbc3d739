import type { LockError } from '../../core/words/errors.js';
import { LockStoreError } from '../../core/words/errors.js';
import { ServerClock } from '../kit/server-clock.js';
import { isConflict, NotCommitted, toLockError } from './mysql-errors.js';
import type { CallbackPool, Row } from './mysql-pool.js';
import { valuesOf, type ArgumentsOf, type Parameters, type Procedure } from './procedures/procedure.js';
import { numberOf } from './rows.js';
import { procedureName } from './schema.js';
import type { SqlStatement } from './sql-statement.js';
import { runStatement } from './statement.js';

/** The time limit of one operation, in milliseconds: the longest, and the shortest, which is what a new connection takes. */
const LIMIT_MS = { longest: 1_000, shortest: 75 } as const;
/** For how long no plain statement is sent where one did not commit by itself, in milliseconds: its connection was ended. */
const UNCOMMITTED_MS = 60_000;
/** How often a statement is sent that the server refuses because of a concurrent one. */
const MOST_TRIES = 10;

/** What a plain statement did. */
export interface Change {
  readonly affectedRows: number;
  /** A text where the options of the pool say so. */
  readonly insertId: number | string;
}

/** Which call a time limit and an error belong to. */
export interface Call {
  /** The key that it is about; '' for none. */
  readonly key: string;
  readonly limitMs: number;
}

/** What an operation on a key has to pass within a limit, in milliseconds; undefined where nothing is to be checked. */
export type Check = (key: string, limitMs: number) => Promise<void> | undefined;

/** The parameters of an operation that refuses to grant later than `latest`. */
type GrantingParameters = Parameters & { readonly latest: 'BIGINT' };

/** Calls operations in one database, within a time limit. Rejects with a lock error. */
export class Calls {
  readonly #pool: CallbackPool;
  readonly #database: string;
  readonly #clock: ServerClock;
  readonly #check: Check;
  /** Until when no plain statement is sent, since one did not commit by itself; 0 where none did not. */
  #uncommittedUntil = 0;

  /** `check` is passed before each operation. `clock` is an estimate of the server's. */
  constructor(pool: CallbackPool, database: string, clock: ServerClock, check: Check = () => undefined) {
    this.#pool = pool;
    this.#database = database;
    this.#clock = clock;
    this.#check = check;
  }

  /**
   * Runs a plain statement that changes at most one row, and says what it did. Undefined where it did nothing: the server refused it
   * because of a concurrent one, or a session did not commit by itself, in which case none is sent for a while.
   */
  async change(sql: string, valuesFor: (latest: number) => readonly unknown[], { key, limitMs: given }: Call): Promise<Change | undefined> {
    if (this.#uncommittedUntil > 0 && performance.now() < this.#uncommittedUntil) {
      return undefined;
    }
    const limitMs = bounded(given);
    const check = this.#check(key, limitMs);
    const leftMs = check ? await leftAfter(check, key, limitMs) : limitMs;
    try {
      const values = valuesFor(this.#clock.latest(performance.now(), leftMs));
      return (await runStatement(this.#pool, { sql, values }, leftMs)) as Change;
    } catch (error) {
      if (error instanceof NotCommitted) {
        this.#uncommittedUntil = performance.now() + UNCOMMITTED_MS;
        return undefined;
      }
      if (isConflict(error)) {
        return undefined;
      }
      throw toLockError(error, key);
    }
  }

  /** Calls an operation, and resolves to the row that it answers. */
  call<P extends Parameters>(operation: Procedure<P>, args: ArgumentsOf<P>, { key, limitMs }: Call): Promise<Row> {
    return this.#call(operation, args, key, bounded(limitMs));
  }

  /**
   * Calls an operation that grants. Its outcome is `late` where it would grant later than this process waits for the reply. Where that
   * reply arrives in time, it was judged by an outdated estimate of the server's clock, and the operation is sent once more.
   */
  async grant<P extends GrantingParameters>(
    operation: Procedure<P>,
    args: Omit<ArgumentsOf<P>, 'latest'>,
    { key, limitMs: given }: Call,
  ): Promise<Row> {
    const limitMs = bounded(given);
    const sentAt = performance.now();
    const row = await this.#grant(operation, args, key, limitMs);
    return row['outcome'] === 'late' ? this.#grant(operation, args, key, sentAt + limitMs - performance.now()) : row;
  }

  /** The same, sent once. */
  grantOnce<P extends GrantingParameters>(
    operation: Procedure<P>,
    args: Omit<ArgumentsOf<P>, 'latest'>,
    { key, limitMs }: Call,
  ): Promise<Row> {
    return this.#grant(operation, args, key, bounded(limitMs));
  }

  /** Runs a statement. */
  async run(statement: SqlStatement, { key, limitMs }: Call): Promise<readonly Row[]> {
    try {
      return (await runStatement(this.#pool, statement, limitMs)) as readonly Row[];
    } catch (error) {
      throw toLockError(error, key);
    }
  }

  #grant<P extends GrantingParameters>(
    operation: Procedure<P>,
    args: Omit<ArgumentsOf<P>, 'latest'>,
    key: string,
    limitMs: number,
  ): Promise<Row> {
    const latest = this.#clock.latest(performance.now(), limitMs);
    return this.#call(operation, { ...args, latest } as ArgumentsOf<P>, key, limitMs);
  }

  async #call<P extends Parameters>(operation: Procedure<P>, args: ArgumentsOf<P>, key: string, limitMs: number): Promise<Row> {
    const check = this.#check(key, limitMs);
    const leftMs = check ? await leftAfter(check, key, limitMs) : limitMs;
    try {
      return await this.#send(operation, valuesOf(operation, args), leftMs, key);
    } catch (error) {
      throw toLockError(error, key) as LockError;
    }
  }

  /** Sends it again where the server refused it because of a concurrent one, and rolled it back. */
  async #send(operation: Procedure, values: readonly unknown[], limitMs: number, key: string): Promise<Row> {
    const sql = `CALL ${procedureName(operation, this.#database)}(${values.map(() => '?').join(', ')})`;
    const giveUpAt = performance.now() + limitMs;
    for (let tries = 1; ; tries++) {
      const sentAt = performance.now();
      try {
        const [[row]] = (await runStatement(this.#pool, { sql, values }, giveUpAt - sentAt)) as [[Row?], unknown];
        this.#clock.read(numberOf(row, 'now_us', key) / 1_000, sentAt);
        return row as Row;
      } catch (error) {
        if (!isConflict(error) || tries >= MOST_TRIES || performance.now() >= giveUpAt) {
          throw error;
        }
      }
    }
  }
}

function bounded(limitMs: number): number {
  return Math.min(Math.max(limitMs, LIMIT_MS.shortest), LIMIT_MS.longest);
}

/** What a check leaves of the limit, in milliseconds. An operation whose check failed was not sent. */
async function leftAfter(check: Promise<void>, key: string, limitMs: number): Promise<number> {
  const startedAt = performance.now();
  try {
    await check;
  } catch (error) {
    throw error instanceof LockStoreError ? new LockStoreError(error.detail, key, { cause: error.cause, unknown: false }) : error;
  }
  return Math.max(0, limitMs - (performance.now() - startedAt));
}
