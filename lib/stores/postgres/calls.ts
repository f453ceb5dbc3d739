import { LockStoreError } from '../../core/words/errors.js';
import { BatchedCalls } from './batched-calls.js';
import { valuesOf, type ArgumentsOf, type Operation, type Parameters } from './functions/sql-function.js';
import { LATE } from './functions/sql-time.js';
import type { PoolState, PostgresPool, Row } from './postgres-pool.js';
import { Statements, type Call } from './statements.js';

/**
 * The time limit of one operation, in milliseconds: the longest, and the shortest, which is what a new connection
 * takes.
 */
const LIMIT_MS = { longest: 1_000, shortest: 75 } as const;

/** What an operation on a key has to pass within a limit, in milliseconds; undefined where nothing is to be checked. */
export type Check = (key: string, limitMs: number) => Promise<void> | undefined;

/** The parameters of an operation that refuses to grant later than `latest`. */
type GrantingParameters = Parameters & { readonly latest: 'bigint' };

/**
 * Calls operations in one database, within a time limit. Those calls of one turn of the event loop that can be in a
 * batch, and have the same limit, are one statement. Rejects with a lock error.
 */
export class Calls {
  readonly #statements: Statements;
  readonly #check: Check;
  readonly #batched = new Map<Operation, BatchedCalls>();

  /** `check` is passed before each operation. */
  constructor(pool: PostgresPool & PoolState, schema: string, check: Check = () => undefined) {
    this.#statements = new Statements(pool, schema);
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
    try {
      return await this.#statements.run(text, values, limitMs);
    } catch (error) {
      throw this.#statements.errorOf(error, key);
    }
  }

  #grant<P extends GrantingParameters>(
    operation: Operation<P>,
    args: Omit<ArgumentsOf<P>, 'latest'>,
    key: string,
    limitMs: number,
  ): Promise<unknown> {
    const latest = this.#statements.clock.latest(performance.now(), limitMs);
    return this.#call(operation, { ...args, latest } as ArgumentsOf<P>, key, limitMs);
  }

  async #call<P extends Parameters>(operation: Operation<P>, args: ArgumentsOf<P>, key: string, limitMs: number): Promise<unknown> {
    const check = this.#check(key, limitMs);
    const leftMs = check ? await leftAfter(check, key, limitMs) : limitMs;
    const request = { key, limitMs: leftMs, values: valuesOf(operation, args) };
    return operation.batch ? this.#batchedOf(operation, operation.batch).ask(request) : this.#statements.call(operation, request);
  }

  #batchedOf(operation: Operation, batch: Operation): BatchedCalls {
    let batched = this.#batched.get(operation);
    if (batched === undefined) {
      batched = new BatchedCalls(this.#statements, operation, batch);
      this.#batched.set(operation, batched);
    }
    return batched;
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
