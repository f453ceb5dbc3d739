import { isInTransaction, isRefusal, NotCommitted, NotSent, StatementTimeout } from './mysql-errors.js';
import type { CallbackPool, MySqlConnection } from './mysql-pool.js';
import { endStatement, identify } from './session.js';
import { ignore, sendTo, type SqlStatement } from './sql-statement.js';

/** How long a connection waits for a reply in all, also after its caller has given up, in milliseconds. */
const PATIENCE_MS = 1_000;
/** How long the server may take to end a statement that is to be ended, in milliseconds. */
const ENDING_MS = 1_000;

/** Runs one statement on a connection of a pool; rejects with what went wrong. */
export function runStatement(pool: CallbackPool, statement: SqlStatement, limitMs: number): Promise<unknown> {
  return new Promise((resolve, reject) => {
    new Statement(pool, statement, limitMs, resolve, reject).connect();
  });
}

/**
 * One statement, from the request for a connection to the end of its use. The caller's time limit covers the wait for a connection.
 *
 * Where the limit is shorter than a second, the connection goes on waiting for its reply until a second is over: a slow server is not a
 * dead one, and a new connection would make it slower. After that the statement is ended by `KILL QUERY`, and its connection with it: a
 * connection that is only closed would live on in the server until the statement ends by itself.
 */
class Statement {
  readonly #pool: CallbackPool;
  readonly #statement: SqlStatement;
  readonly #limitMs: number;
  readonly #resolve: (reply: unknown) => void;
  readonly #reject: (error: Error) => void;
  #timer: NodeJS.Timeout;
  #connection: MySqlConnection | undefined;
  /** Whether its caller has given up. */
  #isLate = false;
  /** Whether its connection has to end: what the server was asked to end could be the next statement on it, or it is in a transaction. */
  #isUnusable = false;
  /** Whether it was answered, or its connection has ended. */
  #isOver = false;
  /** Whether its connection said that it was carried out, that it failed, or that the connection is broken. */
  #isAnswered = false;

  constructor(
    pool: CallbackPool,
    statement: SqlStatement,
    limitMs: number,
    resolve: (reply: unknown) => void,
    reject: (error: Error) => void,
  ) {
    this.#pool = pool;
    this.#statement = statement;
    this.#limitMs = limitMs;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#timer = this.#after(limitMs, () => this.#late());
  }

  connect(): void {
    this.#pool.getConnection((error, connection) => {
      if (this.#isLate) {
        connection?.release();
      } else if (connection) {
        this.#send(connection);
      } else {
        this.#end();
        this.#reject(new NotSent(error ?? undefined));
      }
    });
  }

  #send(connection: MySqlConnection): void {
    this.#connection = connection;
    connection.on('error', ignore);
    identify(connection);
    const answered = (error: Error | null, reply: unknown): void => {
      if (isInTransaction(error) && !this.#isLate) {
        // Its last user left a transaction open, which ends with the connection.
        this.#connection = undefined;
        connection.destroy();
        this.connect();
        return;
      }
      this.#isAnswered = true;
      if (isUncommitted(reply)) {
        this.#isUnusable = true;
        this.#end();
        this.#reject(new NotCommitted());
        return;
      }
      this.#end(error);
      if (error) {
        this.#reject(error);
      } else {
        this.#resolve(reply);
      }
    };
    sendTo(connection, this.#statement, answered);
  }

  #late(): void {
    this.#isLate = true;
    if (this.#connection) {
      this.#reject(new StatementTimeout(this.#limitMs));
      this.#timer = this.#after(PATIENCE_MS - this.#limitMs, () => this.#kill()).unref();
    } else {
      this.#isOver = true;
      this.#reject(new NotSent(whyNone(this.#pool, this.#limitMs)));
    }
  }

  /**
   * Asks the server to end the statement, and ends the connection with it or a little later. Where such statements have all connections of
   * the pool, the first that is ended makes room to ask.
   */
  #kill(): void {
    this.#isUnusable = true;
    endStatement(this.#pool, this.#connection as MySqlConnection, () => this.#isAnswered);
    this.#timer = this.#after(ENDING_MS, () => this.#end(new StatementTimeout(this.#limitMs))).unref();
  }

  /** Releases the connection, or ends it where it is not known to be in order. */
  #end(error?: Error | null): void {
    if (!this.#isOver) {
      this.#isOver = true;
      clearTimeout(this.#timer);
      const connection = this.#connection;
      this.#connection = undefined;
      connection?.removeListener('error', ignore);
      if (this.#isUnusable || (error && !isRefusal(error))) {
        connection?.on('error', ignore);
        connection?.destroy();
      } else {
        connection?.release();
      }
    }
  }

  /** After the event loop was blocked, unread replies are read first. */
  #after(ms: number, judge: () => void): NodeJS.Timeout {
    return setTimeout(() => setImmediate(() => this.#isOver || judge()), Math.max(0, ms));
  }
}

/** The flag of a reply that says that a transaction is open. */
const IN_TRANSACTION = 1;

function isUncommitted(reply: unknown): boolean {
  const { serverStatus } = (reply ?? {}) as { readonly serverStatus?: unknown };
  return typeof serverStatus === 'number' && (serverStatus & IN_TRANSACTION) !== 0;
}

function whyNone({ config }: CallbackPool, limitMs: number): string {
  const ms = Math.round(limitMs);
  return `none was free or could be made within ${ms} ms; raise the connectionLimit (${config.connectionLimit ?? 10}) of the pool, or give the locks a pool of their own`;
}
