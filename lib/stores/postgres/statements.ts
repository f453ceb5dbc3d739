import type { LockError } from '../../core/words/errors.js';
import { ServerClock } from '../kit/server-clock.js';
import { callOf, type Operation } from './functions/sql-function.js';
import { isConflict, toLockError } from './postgres-errors.js';
import type { PoolState, PostgresPool, Row } from './postgres-pool.js';
import { qualified } from './schema-name.js';
import { runStatement } from './statement.js';

/** The server's time in ms since 1970. */
export const NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';
/** How often a statement is sent that the server refuses because of a concurrent one. */
const MOST_TRIES = 10;

/** Which call a time limit and an error belong to. */
export interface Call {
  /** The key that it is about; '' for none. */
  readonly key: string;
  readonly limitMs: number;
}

/** A call of an operation, with its values in the order of the parameters. */
export interface Request extends Call {
  readonly values: readonly unknown[];
}

/** Sends statements to one database, and reads the server's clock from their replies. */
export class Statements {
  readonly clock = new ServerClock();
  readonly #pool: PostgresPool & PoolState;
  readonly #schema: string;
  readonly #texts = new Map<Operation, string>();

  constructor(pool: PostgresPool & PoolState, schema: string) {
    this.#pool = pool;
    this.#schema = schema;
  }

  /** Calls an operation, and resolves to its reply. Rejects with a lock error. */
  async call(operation: Operation, { key, limitMs, values }: Request): Promise<unknown> {
    try {
      return await this.send(operation, values, limitMs);
    } catch (error) {
      throw this.errorOf(error, key);
    }
  }

  /** The same. Rejects with what went wrong. */
  async send(operation: Operation, values: readonly unknown[], limitMs: number): Promise<unknown> {
    const sentAt = performance.now();
    const [row] = await this.run(this.#textOf(operation), values, limitMs);
    this.clock.read(Number(row?.['now']), sentAt);
    return JSON.parse((row?.['reply'] ?? 'null') as string);
  }

  /** Runs any statement; without `values` it may be a script. Rejects with what went wrong. */
  async run(text: string, values: readonly unknown[] | undefined, limitMs: number): Promise<readonly Row[]> {
    const giveUpAt = performance.now() + limitMs;
    let leftMs = limitMs;
    for (let tries = 1; ; tries++) {
      try {
        return await runStatement(this.#pool, text, values, leftMs);
      } catch (error) {
        leftMs = giveUpAt - performance.now();
        if (!isConflict(error) || tries >= MOST_TRIES || leftMs <= 0) {
          throw error;
        }
      }
    }
  }

  /** The lock error for what went wrong in a call about a key. */
  errorOf(error: unknown, key: string): LockError {
    return toLockError(error, key, this.#schema);
  }

  /** Kept, since it costs more to make than to send. */
  #textOf(operation: Operation): string {
    let text = this.#texts.get(operation);
    if (text === undefined) {
      text = qualified(`SELECT ${callOf(operation)} AS reply, ${NOW} AS now`, this.#schema);
      this.#texts.set(operation, text);
    }
    return text;
  }
}
