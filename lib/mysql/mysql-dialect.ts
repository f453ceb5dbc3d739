import type { Answered, Dialect, Row, Sql } from '../sql/dialect.js';
import type { Operation } from '../sql/operation.js';
import { ignore } from '../sql/statement.js';
import { REPEAT } from '../sql/errors.js';
import { RefusedRights } from '../sql/refused-rights.js';
import { isA, isRefusal, NotCommitted } from './mysql-errors.js';
import type { CallbackPool, MySqlConnection } from './mysql-pool.js';
import { numberOf } from './rows.js';
import { procedureName } from './schema.js';
import { endStatement, identify } from './connections/session.js';
import { sendTo } from './connections/connection.js';
import { LEASE, NOW, ROLLBACK } from './tables.js';
import { REFRESH } from './procedures/procedure.js';

/** MySQL or MariaDB by a pool of `mysql2`, with the locks in a database. */
export class MySqlDialect implements Dialect<MySqlConnection> {
  readonly name = 'MySQL';
  readonly store = 'MySqlLockStore';
  readonly table = LEASE;
  readonly #pool: CallbackPool;
  readonly #refusals = new RefusedRights();
  readonly #database: string;
  readonly #refreshing: Sql;

  constructor(pool: CallbackPool, database: string) {
    this.#pool = pool;
    this.#database = database;
    this.#refreshing = { sql: `CALL ${procedureName(REFRESH, database)}()` };
  }

  connect(connected: (error: Error | null, connection: MySqlConnection | undefined) => void): void {
    this.#pool.getConnection(connected);
  }

  whyNone(limitMs: number): string {
    const { connectionLimit = 10 } = this.#pool.config;
    return `none was free or could be made within ${Math.max(0, Math.round(limitMs))} ms; raise the connectionLimit (${connectionLimit}) of the pool, or give the locks a pool of their own`;
  }

  send(connection: MySqlConnection, statement: Sql, answered: Answered): void {
    identify(connection);
    if (statement.sql.startsWith('SELECT ')) {
      read(connection, statement.sql.includes(NOW) ? this.#refreshing : ROLLING_BACK, statement, answered);
    } else {
      sendTo(connection, statement, (error, reply) => answered(error ?? (has(reply, IN_TRANSACTION) ? new NotCommitted() : null), reply));
    }
  }

  release(connection: MySqlConnection, end: Error | boolean): void {
    if (end) {
      connection.destroy();
    } else {
      connection.release();
    }
  }

  /** Where such statements have all connections of the pool, the first that is ended makes room to ask. */
  cancel(connection: MySqlConnection, isAnswered: () => boolean): void {
    endStatement(this.#pool, connection, isAnswered);
  }

  isInTransaction(error: Error): boolean {
    return isA(error, 'unfit');
  }

  /**
   * A connection to a server that was demoted would be the next one that the pool gives; a new connection may lead to
   * the new primary.
   */
  mayStay(error: Error): boolean {
    return isRefusal(error) && !isA(error, 'readOnly') && !isA(error, 'unfit') && !(isA(error, 'right') && this.#refusals.isDue());
  }

  isRefusal(error: Error): boolean {
    return error instanceof NotCommitted || isRefusal(error);
  }

  isConflict(error: unknown): boolean {
    return isA(error, 'conflict');
  }

  cureOf(error: Error): string | undefined {
    const kind = (Object.keys(CURES) as (keyof typeof CURES)[]).find((each) => isA(error, each));
    return kind && CURES[kind];
  }

  isOfKey(): boolean {
    return false;
  }

  /** None of these is a `LockConfigurationError`: it may be over soon, and a release is sent again until then. */
  nextStep(error: Error): string {
    if (isA(error, 'prepared')) {
      return '. Raise max_prepared_stmt_count of the server: the locks prepare about 15 statements on each connection of the pool.';
    }
    if (isA(error, 'connections')) {
      return '. Raise max_connections of the server, or lower the connectionLimit of the pools that lead to it.';
    }
    const readOnly = isA(error, 'readOnly') ? ' (the server is read-only, as a replica is)' : '';
    return `${isA(error, 'conflict') ? ' (another transaction has locked the row)' : readOnly}. ${REPEAT}`;
  }

  callOf(operation: Operation): string {
    const places = Object.keys(operation.parameters).map(() => '?');
    return `CALL ${procedureName(operation, this.#database)}(${places.join(', ')})`;
  }

  answerIn(reply: unknown, key: string): { readonly answer: unknown; readonly serverMs: number } {
    const [[answer]] = reply as [[Row?], unknown];
    return { answer, serverMs: numberOf(answer, 'now_us', key) / 1_000 };
  }
}

/** How to mend errors that no repetition changes, by the kind of the error. */
const CURES = {
  access: 'Correct the user, password and database of the pool given to MySqlLockStore.',
  right:
    'Grant the user SELECT, INSERT, UPDATE and DELETE on the tables distributed_lock_*, and EXECUTE on the procedures, of that database; ' +
    'and CREATE, CREATE ROUTINE and ALTER ROUTINE, to make them by ensureSchema().',
  missing:
    'Call ensureSchema() of the store, or run what schemaSql() returns, to create the tables and procedures in their present version.',
  pageSize: 'The tables of the locks need a server with an innodb_page_size of 16k or more. Keep the locks on another one.',
  binlog: 'Set binlog_format to ROW or MIXED.',
} as const;

/**
 * Sends a query after `first`, so that it sees the data that is committed by now: in a transaction that is open
 * already, it would see the data of the transaction's beginning. So it leaves no transaction open either.
 */
function read(connection: MySqlConnection, first: Sql, statement: Sql, answered: Answered): void {
  sendTo(connection, first, (failed, begun) => {
    if (failed) {
      answered(failed);
      return;
    }
    sendTo(connection, statement, (error, reply) => {
      if (!has(begun, AUTOCOMMIT)) {
        sendTo(connection, ROLLING_BACK, ignore);
      }
      answered(error, reply);
    });
  });
}

const ROLLING_BACK: Sql = { sql: ROLLBACK };

/** The flags of a reply that say that a transaction is open, and that each statement commits by itself. */
const IN_TRANSACTION = 1;
const AUTOCOMMIT = 2;

function has(reply: unknown, flag: number): boolean {
  const { serverStatus } = (reply ?? {}) as { readonly serverStatus?: unknown };
  return typeof serverStatus === 'number' && (serverStatus & flag) !== 0;
}
