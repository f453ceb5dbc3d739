import type { Row, Sql } from '../../sql/dialect.js';
import type { Answered, MySqlConnection, StatementOptions } from '../mysql-pool.js';

/** A statement as a connection takes it, whatever the options of its pool say of how replies are shown. */
export function optionsOf({ sql, values }: Sql): StatementOptions {
  return { sql, ...(values && { values }), rowsAsArray: false, nestTables: false, namedPlaceholders: false, typeCast: asItIs };
}

function asItIs(_field: unknown, next: () => unknown): unknown {
  return next();
}

/** Sends a statement on a connection. */
export function sendTo(connection: MySqlConnection, statement: Sql, answered: Answered): void {
  const options = optionsOf(statement);
  if (options.values) {
    connection.execute(options, answered);
  } else {
    connection.query(options, answered);
  }
}

/** What the server answers where `KILL QUERY` ended the statement. */
const INTERRUPTED = 1317;

/** The rows of the reply. Rejects where there is none in time. A statement that somebody ended answers none. */
export function ask(connection: MySqlConnection, sql: string, limitMs: number): Promise<readonly Row[]> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => setImmediate(() => reject(new Error('no reply'))), limitMs).unref();
    connection.query(optionsOf({ sql }), (error, rows) => {
      clearTimeout(timer);
      if (!error) {
        resolve(rows as readonly Row[]);
      } else if ('errno' in error && error.errno === INTERRUPTED) {
        resolve([]);
      } else {
        reject(error);
      }
    });
  });
}
