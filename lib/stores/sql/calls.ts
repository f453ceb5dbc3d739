import { LockStoreError } from '../../core/words/errors.js';
import { BatchedCalls } from './batched-calls.js';
import type { Dialect, Row, Sql } from './dialect.js';
import { valuesOf, type ArgumentsOf, type Operation, type Parameters } from './operation.js';
import { Statements, type Call } from './statements.js';

/** The time limit of one operation, in milliseconds: the longest, and the shortest, which is what a new connection takes. */
const LIMIT_MS = { longest: 1_000, shortest: 75 } as const;

/** What an operation on a key has to pass within a limit, in milliseconds; undefined where nothing is to be checked. */
export type Check = (key: string, limitMs: number) => Promise<void> | undefined;

/** The parameters of an operation that refuses to grant later than `latest`. */
type GrantingParameters = Parameters & Parameters<'latest'>;

/**
 * Calls operations in one database, within a time limit. Those calls of one turn of the event loop that can be in a batch, and have the
 * same limit, are one statement. Rejects with a lock error.
 */
export class Calls<Reply> {
  readonly #statements: Statements<Reply>;
  readonly #check: Check;
  readonly #batched = new Map<Operation, BatchedCalls>();

  /** `check` is passed before each operation. */
  constructor(dialect: Dialect<unknown, Reply>, check: Check = () => undefined) {
    this.#statements = new Statements(dialect);
    this.#check = check;
  }

  /** Calls an operation, and resolves to its reply. */
  async call<P extends Parameters>(operation: Operation<P>, args: ArgumentsOf<P>, { key, limitMs }: Call): Promise<Reply> {
    return this.#call(operation, args, key, bounded(limitMs));
  }

  /** The same, before the check is passed. */
  callUnchecked<P extends Parameters>(operation: Operation<P>, args: ArgumentsOf<P>, { key, limitMs }: Call): Promise<Reply> {
    return this.#statements.call(operation, { key, limitMs: bounded(limitMs), values: valuesOf(operation, args) });
  }

  /**
   * Calls an operation that grants. Its reply is late where it would grant later than this process waits for the reply. Where that reply
   * arrives in time, it was judged by an outdated estimate of the server's clock, and the operation is sent once more.
   */
  async grant<P extends GrantingParameters>(operation: Operation<P>, args: Omit<ArgumentsOf<P>, 'latest'>, call: Call): Promise<Reply> {
    const limitMs = bounded(call.limitMs);
    const sentAt = performance.now();
    const reply = await this.#grant(operation, args, call.key, limitMs);
    return this.isLate(reply) ? this.#grant(operation, args, call.key, sentAt + limitMs - performance.now()) : reply;
  }

  /** The same, sent once. */
  async grantOnce<P extends GrantingParameters>(operation: Operation<P>, args: Omit<ArgumentsOf<P>, 'latest'>, call: Call): Promise<Reply> {
    return this.#grant(operation, args, call.key, bounded(call.limitMs));
  }

  isLate(reply: Reply): boolean {
    return this.#statements.isLate(reply);
  }

  /** Runs a statement that is no operation, and resolves to its rows. */
  run(statement: Sql, call: Call): Promise<readonly Row[]> {
    return this.#statements.run(statement, call);
  }

  /**
   * Sends a plain statement that does what an operation does, once, and resolves to the reply as the driver has it. `statementFor` gets
   * the latest time at which it may be carried out. Rejects with what went wrong.
   */
  async sendPlain(statementFor: (latest: number) => Sql, { key, limitMs: given }: Call): Promise<unknown> {
    const limitMs = bounded(given);
    const check = this.#check(key, limitMs);
    const leftMs = check ? await leftAfter(check, key, limitMs) : limitMs;
    return this.#statements.once(statementFor(this.#statements.clock.latest(performance.now(), leftMs)), leftMs);
  }

  /** The lock error for what went wrong in a call about a key. */
  errorOf(error: unknown, key: string): Error {
    return this.#statements.errorOf(error, key);
  }

  #grant<P extends GrantingParameters>(
    operation: Operation<P>,
    args: Omit<ArgumentsOf<P>, 'latest'>,
    key: string,
    limitMs: number,
  ): Promise<Reply> {
    const latest = this.#statements.clock.latest(performance.now(), limitMs);
    return this.#call(operation, { ...args, latest } as unknown as ArgumentsOf<P>, key, limitMs);
  }

  async #call<P extends Parameters>(operation: Operation<P>, args: ArgumentsOf<P>, key: string, limitMs: number): Promise<Reply> {
    const check = this.#check(key, limitMs);
    const leftMs = check ? await leftAfter(check, key, limitMs) : limitMs;
    const request = { key, limitMs: leftMs, values: valuesOf(operation, args) };
    const { batch } = operation;
    return batch ? (this.#batchedOf(operation, batch).ask(request) as Promise<Reply>) : this.#statements.call(operation, request);
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
