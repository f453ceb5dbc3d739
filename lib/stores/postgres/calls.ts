import { LockStoreError } from '../../core/errors.js';
import { ServerClock } from '../kit/server-clock.js';
import { callOf, valuesOf, type ArgumentsOf, type Operation, type Parameters } from './functions/sql-function.js';
import { LATE } from './functions/sql-time.js';
import { isConflict, toLockError } from './postgres-errors.js';
import type { PoolState, PostgresPool, Row } from './postgres-pool.js';
import { qualified } from './schema-name.js';
import { runStatement } from './statement.js';

/**
 * The time limit of one operation, in milliseconds: the longest, and the shortest, which is what a new connection
 * takes.
 */
const LIMIT_MS = { longest: 1_000, shortest: 75 } as const;
/** The server's time in ms after an operation. */
const NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';
/** How often an operation is sent that the server refuses because of a concurrent one. */
const MOST_TRIES = 10;

/** Which call a time limit and an error belong to. */
export interface Call {
  /** The key that it is about; '' for none. */
  readonly key: string;
  readonly limitMs: number;
}

/** What an operation on a key has to pass within a limit, in milliseconds; undefined where nothing is to be checked. */
export type Check = (key: string, limitMs: number) => Promise<void> | undefined;

/** The parameters of an operation that refuses to grant later than `latest`. */
type GrantingParameters = Parameters & { readonly latest: 'bigint' };

/** Calls operations in one database, each as a statement of its own, within a time limit. Rejects with a lock error. */
export class Calls {
  readonly #pool: PostgresPool & PoolState;
  readonly #schema: string;
  readonly #check: Check;
  readonly #clock = new ServerClock();
  readonly #texts = new Map<Operation, string>();

  /** `check` is passed before each operation. */
  constructor(pool: PostgresPool & PoolState, schema: string, check: Check = () => undefined) {
    this.#pool = pool;
    this.#schema = schema;
    this.#check = check;
  }

  /** Calls an operation, and resolves to its reply. */
  async call<P extends Parameters>(operation: Operation<P>, args: ArgumentsOf<P>, call: Call): Promise<unknown> {
    return this.#call(operation, args, call.key, bounded(call.limitMs));
  }

  /**
   * Calls an operation that grants. It replies `LATE` instead where it would grant later than this process waits for
   * the reply. Where that reply arrives in time, it was judged by an outdated estimate of the server's clock, and the
   * operation is sent once more.
   */
  async grant<P extends GrantingParameters>(operation: Operation<P>, args: Omit<ArgumentsOf<P>, 'latest'>, call: Call): Promise<unknown> {
    const limitMs = bounded(call.limitMs);
    const sentAt = performance.now();
    const reply = await this.#grant(operation, args, call.key, limitMs);
    return reply === LATE ? this.#grant(operation, args, call.key, sentAt + limitMs - performance.now()) : reply;
  }

  /** The same, sent once. */
  async grantOnce<P extends GrantingParameters>(
    operation: Operation<P>,
    args: Omit<ArgumentsOf<P>, 'latest'>,
    call: Call,
  ): Promise<unknown> {
    return this.#grant(operation, args, call.key, bounded(call.limitMs));
  }

  /** Runs any statement; without `values` it may be a script. */
  async run(text: string, values: readonly unknown[] | undefined, { key, limitMs }: Call): Promise<readonly Row[]> {
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

  #grant<P extends GrantingParameters>(
    operation: Operation<P>,
    args: Omit<ArgumentsOf<P>, 'latest'>,
    key: string,
    limitMs: number,
  ): Promise<unknown> {
    const latest = this.#clock.latest(performance.now(), limitMs);
    return this.#call(operation, { ...args, latest } as ArgumentsOf<P>, key, limitMs);
  }

  async #call<P extends Parameters>(operation: Operation<P>, args: ArgumentsOf<P>, key: string, limitMs: number): Promise<unknown> {
    const check = this.#check(key, limitMs);
    const leftMs = check ? await leftAfter(check, key, limitMs) : limitMs;
    const sentAt = performance.now();
    const [row] = await this.run(this.#textOf(operation), valuesOf(operation, args), { key, limitMs: leftMs });
    this.#clock.read(Number(row?.['now']), sentAt);
    return JSON.parse((row?.['reply'] ?? 'null') as string);
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
