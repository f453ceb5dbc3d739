import type { Row, Sql } from '../../sql/dialect.js';
import { NoReply } from '../../kit/no-reply.js';
import { NotSent } from '../../sql/errors.js';
import { ignore } from '../../sql/statement.js';
import type { CallbackPool, MySqlConnection } from '../mysql-pool.js';
import { sendTo } from './sql-statement.js';

/** Runs a statement on the connection, and resolves to its rows. */
export type Run = (statement: Sql) => Promise<readonly Row[]>;

/**
 * Runs statements on one connection of a pool, which ends with them: what they set in its session is for nobody else. Rejects with what
 * `body` rejects with, or with what went wrong.
 */
export async function onOneConnection(pool: CallbackPool, limitMs: number, body: (run: Run) => Promise<void>): Promise<void> {
  const giveUpAt = performance.now() + limitMs;
  const connection = await connectionOf(pool, limitMs);
  connection.on('error', ignore);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new NoReply(limitMs)), giveUpAt - performance.now());
  });
  try {
    await Promise.race([body((statement) => run(connection, statement)), late]);
  } finally {
    clearTimeout(timer);
    connection.destroy();
  }
}

/** A connection of a pool. Rejects where there is none in time. */
export function connectionOf(pool: CallbackPool, limitMs: number): Promise<MySqlConnection> {
  return new Promise((resolve, reject) => {
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      reject(new NotSent());
    }, limitMs);
    pool.getConnection((error, connection) => {
      clearTimeout(timer);
      if (isLate) {
        connection?.release();
      } else if (connection) {
        resolve(connection);
      } else {
        reject(new NotSent(error ?? undefined));
      }
    });
  });
}

function run(connection: MySqlConnection, statement: Sql): Promise<readonly Row[]> {
  return new Promise((resolve, reject) => {
    sendTo(connection, statement, (error, reply) => (error ? reject(error) : resolve(reply as readonly Row[])));
  });
}
