import type { Answered, Dialect, Row, Sql } from '../sql/dialect.js';
import type { Operation } from '../sql/operation.js';
import { ignore } from '../sql/statement.js';
import { cureOf, isA, isRefusal, nextStep, NotCommitted } from './mysql-errors.js';
import type { CallbackPool, MySqlConnection } from './mysql-pool.js';
import { numberOf } from './rows.js';
import { procedureName } from './schema.js';
import { endStatement, identify } from './session.js';
import { sendTo } from './sql-statement.js';
import { LEASE } from './tables.js';

/** MySQL or MariaDB by a pool of `mysql2`, with the locks in a database. */
export class MySqlDialect implements Dialect<MySqlConnection, Row> {
  readonly name = 'MySQL';
  readonly store = 'MySqlLockStore';
  readonly table = LEASE;
  readonly #pool: CallbackPool;
  readonly #database: string;

  constructor(pool: CallbackPool, database: string) {
    this.#pool = pool;
    this.#database = database;
  }

  connect(connected: (error: Error | null, connection: MySqlConnection | undefined) => void): void {
    this.#pool.getConnection(connected);
  }

  whyNone(limitMs: number): string {
    const { connectionLimit = 10 } = this.#pool.config;
    return `none was free or could be made within ${Math.round(limitMs)} ms; raise the connectionLimit (${connectionLimit}) of the pool, or give the locks a pool of their own`;
  }

  giveBack(connection: MySqlConnection): void {
    connection.release();
  }

  send(connection: MySqlConnection, statement: Sql, answered: Answered): void {
    connection.on('error', ignore);
    identify(connection);
    sendTo(connection, statement, (error, reply) => answered(error ?? (isUncommitted(reply) ? new NotCommitted() : null), reply));
  }

  release(connection: MySqlConnection, end: Error | boolean): void {
    if (end) {
      connection.destroy();
    } else {
      connection.removeListener('error', ignore);
      connection.release();
    }
  }

  /** Where such statements have all connections of the pool, the first that is ended makes room to ask. */
  cancel(connection: MySqlConnection, isAnswered: () => boolean): void {
    endStatement(this.#pool, connection, isAnswered);
  }

  isInTransaction(error: Error): boolean {
    return isA(error, 'inTransaction');
  }

  mayStay(error: Error): boolean {
    return isRefusal(error);
  }

  isRefusal(error: Error): boolean {
    return error instanceof NotCommitted || isRefusal(error);
  }

  isConflict(error: unknown): boolean {
    return isA(error, 'conflict');
  }

  cureOf(error: Error): string | undefined {
    return cureOf(error);
  }

  nextStep(error: Error): string {
    return nextStep(error);
  }

  callOf(operation: Operation): string {
    const places = Object.keys(operation.parameters).map(() => '?');
    return `CALL ${procedureName(operation, this.#database)}(${places.join(', ')})`;
  }

  read(answer: unknown, key: string): { readonly reply: Row; readonly serverMs: number } {
    const [[row]] = answer as [[Row?], unknown];
    return { reply: row as Row, serverMs: numberOf(row, 'now_us', key) / 1_000 };
  }

  isLate(reply: Row): boolean {
    return reply['outcome'] === 'late';
  }
}

/** The flag of a reply that says that a transaction is open. */
const IN_TRANSACTION = 1;

function isUncommitted(reply: unknown): boolean {
  const { serverStatus } = (reply ?? {}) as { readonly serverStatus?: unknown };
  return typeof serverStatus === 'number' && (serverStatus & IN_TRANSACTION) !== 0;
}
