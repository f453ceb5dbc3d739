import { cancelStatement } from './cancel.js';
import { isLocalOnly, isRefusal, NotReplicated, NotSent, StatementTimeout } from './postgres-errors.js';
import type { PoolState, PostgresClient, PostgresPool, Row } from './postgres-pool.js';

/** For how long a connection waits for a reply in all, whether or not somebody still waits for it, in milliseconds. */
const PATIENCE_MS = 1_000;
/** How long the reply to a statement may take that was cancelled, in milliseconds. */
const CANCELLED_MS = 1_000;

/** Runs one statement on a connection of a pool, outside of any transaction; rejects with what went wrong. */
export function runStatement(
  pool: PostgresPool & PoolState,
  text: string,
  values: readonly unknown[] | undefined,
  limitMs: number,
): Promise<readonly Row[]> {
  return new Promise((resolve, reject) => {
    new Statement(pool, text, values, limitMs, resolve, reject).connect();
  });
}

/**
 * A statement on its way. The time limit covers the wait for a connection. Where that is
 * less than a second, the connection waits for its reply until then: a slow server is not a dead one, and a new connection would
 * make it slower. After that the statement is cancelled, and its connection ended. It counts as one of the pool's
 * until the server has answered, or has heard that it is cancelled: a connection that is only closed lives on in the
 * server, beside the one that takes its place.
 */
class Statement {
  readonly #pool: PostgresPool & PoolState;
  readonly #text: string;
  readonly #values: readonly unknown[] | undefined;
  readonly #limitMs: number;
  readonly #resolve: (rows: readonly Row[]) => void;
  readonly #reject: (error: Error) => void;
  #timer: NodeJS.Timeout;
  #client: PostgresClient | undefined;
  /** Whether nobody waits for it any more. */
  #isLate = false;
  /** Whether the server is asked to cancel it: what its connection does next might be cancelled instead. */
  #isCancelled = false;
  /** Whether the commit did not wait for a standby, because somebody cancelled that. */
  #isLocal = false;
  /** Whether it was answered, or its connection has ended. */
  #isOver = false;

  constructor(
    pool: PostgresPool & PoolState,
    text: string,
    values: readonly unknown[] | undefined,
    limitMs: number,
    resolve: (rows: readonly Row[]) => void,
    reject: (error: Error) => void,
  ) {
    this.#pool = pool;
    this.#text = text;
    this.#values = values;
    this.#limitMs = limitMs;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#timer = this.#after(limitMs, () => this.#late());
  }

  connect(): void {
    this.#pool.connect((error, client) => {
      if (this.#isLate) {
        // Not at once: the pool hands it to the next, who may be late too, and thousands would fill the stack.
        queueMicrotask(() => client?.release());
      } else if (!client) {
        this.#end();
        this.#reject(new NotSent(error));
      } else if ((client.getTransactionStatus?.() ?? 'I') === 'I') {
        this.#send(client);
      } else {
        // Whoever had it before gave it back in the middle of a transaction. What is granted there, nobody else would see.
        client.release(true);
        this.connect();
      }
    });
  }

  #send(client: PostgresClient): void {
    this.#client = client;
    client.on('error', ignore);
    client.on('notice', this.#notice);
    client.query(this.#text, this.#values, (error, result) => {
      // A script that failed leaves its transaction open.
      const isUsable = !error || (this.#values !== undefined && isRefusal(error));
      this.#end(isUsable ? undefined : error);
      if (error) {
        this.#reject(error);
      } else if (this.#isLocal) {
        this.#reject(new NotReplicated());
      } else {
        this.#resolve(result.rows);
      }
    });
  }

  readonly #notice = (notice: Error): void => {
    this.#isLocal ||= isLocalOnly(notice);
  };

  #late(): void {
    this.#isLate = true;
    if (this.#client) {
      this.#reject(new StatementTimeout(this.#limitMs));
      this.#timer = this.#after(PATIENCE_MS - this.#limitMs, () => void this.#cancel(this.#client as PostgresClient)).unref();
    } else {
      this.#isOver = true;
      this.#reject(new NotSent(whyNone(this.#pool, this.#limitMs)));
    }
  }

  async #cancel(client: PostgresClient): Promise<void> {
    this.#isCancelled = true;
    await cancelStatement(this.#pool, client, () => this.#isOver);
    if (!this.#isOver) {
      this.#timer = this.#after(CANCELLED_MS, () => this.#end()).unref();
    }
  }

  /** Gives the connection back, or ends it. */
  #end(error?: Error): void {
    if (!this.#isOver) {
      this.#isOver = true;
      clearTimeout(this.#timer);
      this.#client?.removeListener('error', ignore);
      this.#client?.removeListener('notice', this.#notice);
      this.#client?.release(error ?? this.#isCancelled);
    }
  }

  /** Where the event loop was blocked, replies that lie unread are read first. */
  #after(ms: number, judge: () => void): NodeJS.Timeout {
    return setTimeout(() => setImmediate(() => this.#isOver || judge()), Math.max(0, ms));
  }
}

function whyNone({ options, totalCount = 0, idleCount = 0 }: PoolState, limitMs: number): string {
  const { max = Infinity } = options;
  const ms = Math.round(limitMs);
  return totalCount >= max && idleCount === 0
    ? `all ${max} of the pool have been in use for ${ms} ms; raise its max, or give the locks a pool of their own`
    : `none could be made within ${ms} ms`;
}

/** The statement is told of it too. */
function ignore(): void {}
