import type { Dialect, PooledConnection, Sql } from './dialect.js';
import { NoReply } from '../kit/no-reply.js';
import { NotSent } from './errors.js';

/** How long a connection waits for a reply in all, also after its caller has given up, in milliseconds. */
const PATIENCE_MS = 1_000;
/** How long the server may take to reply to a cancelled statement, in milliseconds. */
const CANCELLED_MS = 1_000;

/** The reply to a statement, and when that was sent: the wait for a connection is over by then. */
export interface Replied {
  readonly reply: unknown;
  readonly sentAt: number;
}

/** Runs one statement on a connection of a pool, outside of any transaction; rejects with the error of the attempt. */
export function runStatement(dialect: Dialect, statement: Sql, limitMs: number): Promise<Replied> {
  return new Promise((resolve, reject) => {
    new Statement(dialect, statement, limitMs, resolve, reject).connect();
  });
}

/**
 * One statement, from the request for a connection to the end of its use. The caller's time limit covers the wait for a
 * connection.
 *
 * Where the limit is shorter than a second, the connection goes on waiting for its reply until a second is over: a slow
 * server is not a dead one, and a new connection would make it slower. After that the statement is cancelled, and its
 * connection ended. The connection counts as one of the pool's until the server has answered or has taken the request
 * to cancel. A connection that is only closed would live on in the server, beside the one that takes its place.
 */
class Statement {
  readonly #dialect: Dialect;
  readonly #statement: Sql;
  readonly #limitMs: number;
  readonly #resolve: (replied: Replied) => void;
  readonly #reject: (error: Error) => void;
  #timer: NodeJS.Timeout;
  #connection: PooledConnection | undefined;
  /** Whether its caller has given up. */
  #isLate = false;
  /**
   * Whether the server was asked to end the statement. The request may come late and end another statement, so the
   * connection is not used again.
   */
  #isCancelled = false;
  /** Whether its connection said that it was carried out, that it failed, or that the connection is broken. */
  #isAnswered = false;
  /** Whether it was answered, or its connection has ended. */
  #isOver = false;

  constructor(dialect: Dialect, statement: Sql, limitMs: number, resolve: (replied: Replied) => void, reject: (error: Error) => void) {
    this.#dialect = dialect;
    this.#statement = statement;
    this.#limitMs = limitMs;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#timer = this.#after(limitMs, () => this.#late());
  }

  connect(): void {
    this.#dialect.connect((error, connection) => {
      // The pool listens to its errors only while it keeps it, and its end may arrive together with its beginning.
      connection?.on('error', ignore);
      if (connection && this.#isLate) {
        // Not at once: the pool hands the connection to the next statement, which may be late too, and thousands of
        // such statements would overflow the stack.
        queueMicrotask(() => this.#release(connection, false));
      } else if (connection) {
        this.#send(connection);
      } else {
        this.#end();
        this.#reject(new NotSent(error ?? undefined));
      }
    });
  }

  #send(connection: PooledConnection): void {
    this.#connection = connection;
    const sentAt = performance.now();
    this.#dialect.send(connection, this.#statement, (error, reply) => {
      if (error && !this.#isLate && this.#dialect.isInTransaction(error)) {
        // No other session would see a grant that is made there. The transaction ends with the connection.
        this.#connection = undefined;
        this.#release(connection, true);
        this.connect();
        return;
      }
      this.#isAnswered = true;
      this.#end(error && !this.#dialect.mayStay(error, this.#statement) ? error : false);
      if (error) {
        this.#reject(error);
      } else {
        this.#resolve({ reply, sentAt });
      }
    });
  }

  #late(): void {
    this.#isLate = true;
    const connection = this.#connection;
    if (connection !== undefined) {
      this.#reject(new NoReply(this.#limitMs));
      this.#timer = this.#after(PATIENCE_MS - this.#limitMs, () => void this.#cancel(connection)).unref();
    } else {
      this.#isOver = true;
      this.#reject(new NotSent(this.#dialect.whyNone(this.#limitMs)));
    }
  }

  async #cancel(connection: PooledConnection): Promise<void> {
    this.#isCancelled = true;
    try {
      await this.#dialect.cancel(connection, () => this.#isAnswered);
    } catch {
      // A driver that cannot ask the server must not end the process: the connection ends all the same.
    }
    if (!this.#isOver) {
      this.#timer = this.#after(CANCELLED_MS, () => this.#end()).unref();
    }
  }

  /** Releases the connection, or ends it where it is not known to be in order. */
  #end(error: Error | false = false): void {
    if (!this.#isOver) {
      this.#isOver = true;
      clearTimeout(this.#timer);
      if (this.#connection !== undefined) {
        this.#release(this.#connection, error || this.#isCancelled);
      }
    }
  }

  #release(connection: PooledConnection, end: Error | boolean): void {
    if (!end) {
      connection.removeListener('error', ignore);
    }
    this.#dialect.release(connection, end);
  }

  /** After the event loop was blocked, unread replies are read first. */
  #after(ms: number, judge: () => void): NodeJS.Timeout {
    return setTimeout(() => setImmediate(() => this.#isOver || judge()), Math.max(0, ms));
  }
}

/** For the error events of a connection: its statement fails as well, and reports it. */
export function ignore(): void {}
