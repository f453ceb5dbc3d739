import { cancelStatement } from './cancel.js';
import { isLocalOnly, isRefusal, NotReplicated, NotSent, StatementTimeout } from './postgres-errors.js';
import type { PoolState, PostgresClient, PostgresPool, Row } from './postgres-pool.js';

/** How long a connection waits for a reply in all, also after its caller has given up, in milliseconds. */
const PATIENCE_MS = 1_000;
/** How long the server may take to reply to a cancelled statement, in milliseconds. */
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
 * One statement, from the request for a connection to the end of its use. The caller's time limit covers the wait for a
 * connection.
 *
 * Where the limit is shorter than a second, the connection goes on waiting for its reply until a second is over: a slow
 * server is not a dead one, and a new connection would make it slower. After that the statement is cancelled, and its
 * connection ended. The connection counts as one of the pool's until the server has answered or has taken the request
 * to cancel: one that is only closed would live on in the server, beside the one that takes its place.
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
  /** Whether its caller has given up. */
  #isLate = false;
  /**
   * Whether the server was asked to cancel it. That could hit the next statement of its connection instead, so there is
   * none.
   */
  #isCancelled = false;
  /** Whether its commit did not wait for a standby, because an administrator cancelled that wait. */
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
        giveBack(client);
      } else if (!client) {
        this.#end();
        this.#reject(new NotSent(error));
      } else if ((client.getTransactionStatus?.() ?? 'I') === 'I') {
        this.#send(client);
      } else {
        // Its last user released it inside a transaction. No other session would see a grant that is made there.
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

  /** Releases the connection, or ends it. */
  #end(error?: Error): void {
    if (!this.#isOver) {
      this.#isOver = true;
      clearTimeout(this.#timer);
      this.#client?.removeListener('error', ignore);
      this.#client?.removeListener('notice', this.#notice);
      this.#client?.release(error ?? this.#isCancelled);
    }
  }

  /** After the event loop was blocked, unread replies are read first. */
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

/**
 * Gives a connection back that its statement did not wait for. Not at once: the pool hands it to the next statement, which may
 * be late too, and thousands of them would overflow the stack. The pool listens to its errors only from then on, and the end
 * of the connection may arrive together with its beginning.
 */
function giveBack(client: PostgresClient | undefined): void {
  client?.on('error', ignore);
  queueMicrotask(() => {
    client?.removeListener('error', ignore);
    client?.release();
  });
}

/** The statement fails as well, and reports it. */
function ignore(): void {}
