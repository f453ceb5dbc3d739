import type { Answered, Row, Sql } from '../../sql/dialect.js';
import { NoReply, within } from '../../kit/no-reply.js';
import { NotSent } from '../../sql/errors.js';
import { ignore } from '../../sql/statement.js';
import type { CallbackPool, MySqlConnection } from '../mysql-pool.js';

/** The number of the server's error where `KILL QUERY` ended the statement. */
const INTERRUPTED = 1317;

/** Runs a statement on the connection, and resolves to its rows. */
export type Run = (statement: Sql) => Promise<readonly Row[]>;

/** Sends a statement on a connection, whatever the options of its pool say of how replies are shown. */
export function sendTo(connection: MySqlConnection, { sql, values }: Sql, answered: Answered): void {
  const options = {
    sql,
    ...(values && { values }),
    rowsAsArray: false,
    nestTables: false,
    namedPlaceholders: false,
    typeCast: asItIs,
  };
  if (values) {
    connection.execute(options, answered);
  } else {
    connection.query(options, answered);
  }
}

/** A function, since the driver prefers the pool's own `typeCast` to anything else. */
function asItIs(_field: unknown, next: () => unknown): unknown {
  return next();
}

/** The rows of the reply. Rejects where there is none in time. A statement that somebody ended answers none. */
export async function ask(connection: MySqlConnection, sql: string, limitMs: number): Promise<readonly Row[]> {
  try {
    return await within(limitMs, run(connection, { sql }));
  } catch (error) {
    if ((error as { readonly errno?: unknown }).errno === INTERRUPTED) {
      return [];
    }
    throw error;
  }
}

/**
 * Runs statements on one connection of a pool, which is closed after them: settings of its session are for nobody else.
 * Rejects with the error of `body`, or with the reason why there is no connection.
 */
export async function onOneConnection(pool: CallbackPool, limitMs: number, body: (run: Run) => Promise<void>): Promise<void> {
  const giveUpAt = performance.now() + limitMs;
  const connection = await connectionOf(pool, limitMs);
  connection.on('error', ignore);
  try {
    const work = body((statement) => run(connection, statement));
    await within(giveUpAt - performance.now(), work, () => new NoReply(limitMs));
  } finally {
    connection.destroy();
  }
}

/** A connection of a pool. Rejects where there is none in time. */
export async function connectionOf(pool: CallbackPool, limitMs: number): Promise<MySqlConnection> {
  const connecting = new Promise<MySqlConnection>((resolve, reject) => {
    pool.getConnection((error, connection) => (connection ? resolve(connection) : reject(new NotSent(error ?? undefined))));
  });
  try {
    return await within(limitMs, connecting, () => new NotSent());
  } catch (error) {
    connecting.then((connection) => connection.release(), ignore);
    throw error;
  }
}

function run(connection: MySqlConnection, statement: Sql): Promise<readonly Row[]> {
  return new Promise((resolve, reject) => {
    sendTo(connection, statement, (error, reply) => (error ? reject(error) : resolve(reply as readonly Row[])));
  });
}
