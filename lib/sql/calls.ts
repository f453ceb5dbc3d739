import { LockConfigurationError, LockStoreError } from '../core/words/errors.js';
import { within } from '../kit/no-reply.js';
import type { ServerClock } from '../kit/server-clock.js';
import { BatchedCalls } from './batched-calls.js';
import type { Dialect, Row, Sql } from './dialect.js';
import { REPEAT } from './errors.js';
import { LATE, valuesOf, type ArgumentsOf, type Operation, type Parameters } from './operation.js';
import { runStatement } from './statement.js';
import { Statements, type StatementLimit } from './statements.js';

/**
 * The time limit of one operation, in milliseconds: the longest, and the shortest, which is the time that a new
 * connection takes.
 */
const LIMIT_MS = { longest: 1_000, shortest: 75 } as const;

/** The check that operations have to pass first; undefined where nothing is to be checked. */
type Check = () => Promise<void> | undefined;

/** The parameters of an operation that refuses to grant later than `latest`, and its arguments. */
type Granting = Parameters & Parameters<'latest'>;
type GrantArguments<P extends Granting> = Omit<ArgumentsOf<P>, 'latest'>;

/**
 * Calls operations in one database, within a time limit, and in batches where an operation has one. Rejects with a lock
 * error.
 */
export class Calls {
  readonly #dialect: Dialect;
  readonly #statements: Statements;
  readonly #check: Check;
  readonly #batched = new Map<Operation, BatchedCalls>();

  /** `check` is passed before each operation. Calls of `operations` that have a batch are sent together. */
  constructor(dialect: Dialect, check: Check = () => undefined, operations: readonly Operation[] = []) {
    this.#dialect = dialect;
    this.#statements = new Statements(dialect);
    this.#check = check;
    for (const operation of operations) {
      if (operation.batch) {
        this.#batched.set(operation, new BatchedCalls(this.#statements, dialect, operation, operation.batch));
      }
    }
  }

  /** Calls an operation, and resolves to its reply. */
  async call<P extends Parameters, Reply>(operation: Operation<P, Reply>, args: ArgumentsOf<P>, limit: StatementLimit): Promise<Reply> {
    return this.#call(operation, args, bounded(limit));
  }

  /** Calls an operation without the check. The check itself uses it. */
  async callUnchecked<P extends Parameters, Reply>(
    operation: Operation<P, Reply>,
    args: ArgumentsOf<P>,
    limit: StatementLimit,
  ): Promise<Reply> {
    const request = { ...bounded(limit), values: valuesOf(operation, args) };
    return operation.read(await this.#statements.call(operation, request), limit.key);
  }

  /**
   * Calls an operation that grants. It replies `LATE` where it would grant later than this process waits for the reply.
   * If `LATE` arrives in time, the estimate of the server's clock was outdated, and the operation is sent once more.
   */
  async grant<P extends Granting, Reply>(operation: Operation<P, Reply>, args: GrantArguments<P>, limit: StatementLimit): Promise<Reply> {
    const { key, limitMs } = bounded(limit);
    const sentAt = performance.now();
    const reply = await this.#grant(operation, args, { key, limitMs });
    return reply === LATE ? this.#grant(operation, args, { key, limitMs: sentAt + limitMs - performance.now() }) : reply;
  }

  /** Calls an operation that grants, and sends it once only. */
  async grantOnce<P extends Granting, Reply>(
    operation: Operation<P, Reply>,
    args: GrantArguments<P>,
    limit: StatementLimit,
  ): Promise<Reply> {
    return this.#grant(operation, args, bounded(limit));
  }

  /** Runs a statement that is no operation, and resolves to its rows. */
  run(statement: Sql, limit: StatementLimit): Promise<readonly Row[]> {
    return this.#statements.run(statement, limit);
  }

  /** The estimate of the server's clock. Replies to operations correct it; replies to plain statements name no time. */
  get clock(): ServerClock {
    return this.#statements.clock;
  }

  /**
   * Sends a plain statement that does the work of an operation, once, and resolves to the reply as the driver has it.
   * `statementFor` gets the latest time at which the statement may be carried out. Rejects with the error of the
   * attempt.
   */
  async sendPlain(statementFor: (latest: number) => Sql, limit: StatementLimit): Promise<unknown> {
    const { key, limitMs } = bounded(limit);
    const check = this.#check();
    const leftMs = check ? await leftAfter(check, { key, limitMs }, this.#dialect) : limitMs;
    const statement = statementFor(this.#statements.clock.latest(performance.now(), leftMs));
    return (await runStatement(this.#dialect, statement, leftMs)).reply;
  }

  #grant<P extends Granting, Reply>(operation: Operation<P, Reply>, args: GrantArguments<P>, limit: StatementLimit): Promise<Reply> {
    const latest = this.#statements.clock.latest(performance.now(), limit.limitMs);
    return this.#call(operation, { ...args, latest } as unknown as ArgumentsOf<P>, limit);
  }

  async #call<P extends Parameters, Reply>(
    operation: Operation<P, Reply>,
    args: ArgumentsOf<P>,
    { key, limitMs }: StatementLimit,
  ): Promise<Reply> {
    const check = this.#check();
    const leftMs = check ? await leftAfter(check, { key, limitMs }, this.#dialect) : limitMs;
    const request = { key, limitMs: leftMs, values: valuesOf(operation, args) };
    const answer = this.#batched.get(operation)?.ask(request) ?? this.#statements.call(operation, request);
    return operation.read(await answer, key);
  }
}

function bounded({ key, limitMs }: StatementLimit): StatementLimit {
  return { key, limitMs: Math.min(Math.max(limitMs, LIMIT_MS.shortest), LIMIT_MS.longest) };
}

/**
 * The rest of the limit after a check, in milliseconds. An operation whose check did not end in time, or failed, was
 * not sent.
 */
async function leftAfter(check: Promise<void>, { key, limitMs }: StatementLimit, { name }: Dialect): Promise<number> {
  const startedAt = performance.now();
  const failed = (why: string, cause?: unknown): LockStoreError =>
    new LockStoreError(key === '' ? why : `Lock "${key}": ${why}`, key, { cause, unknown: false });
  try {
    await within(limitMs, check, () => failed(`${name} is being checked, since it was away when the store was opened. ${REPEAT}`));
  } catch (error) {
    throw error instanceof LockStoreError && error.key !== key ? failed(error.detail, error.cause) : ofStore(error);
  }
  // In whole milliseconds: only calls that have the same limit are sent together.
  return Math.max(0, Math.floor(limitMs - (performance.now() - startedAt)));
}

/** A database that did not pass its check refuses every call. */
function ofStore(error: unknown): unknown {
  return error instanceof LockConfigurationError && !error.ofStore
    ? new LockConfigurationError(error.detail, error.key, { ...(error.cause !== undefined && { cause: error.cause }), ofStore: true })
    : error;
}
