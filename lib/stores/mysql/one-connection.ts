import { NotSent, StatementTimeout } from './mysql-errors.js';
import type { CallbackPool, MySqlConnection, Row } from './mysql-pool.js';
import { sendTo, type SqlStatement } from './statement.js';

/** Runs a statement on the connection, and resolves to its rows. */
export type Run = (statement: SqlStatement) => Promise<readonly Row[]>;

/**
 * Runs statements on one connection of a pool, which ends with them: what they set in its session is for nobody else. Rejects with what
 * `body` rejects with, or with what went wrong.
 */
export function onOneConnection(pool: CallbackPool, limitMs: number, body: (run: Run) => Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    let connection: MySqlConnection | undefined;
    let isOver = false;
    const end = (settle: () => void): void => {
      isOver = true;
      clearTimeout(timer);
      connection?.destroy();
      settle();
    };
    const timer = setTimeout(() => end(() => reject(connection ? new StatementTimeout(limitMs) : new NotSent())), limitMs);
    pool.getConnection((error, given) => {
      if (isOver) {
        given?.release();
      } else if (given) {
        connection = given;
        given.on('error', ignore);
        body((statement) => run(given, statement)).then(
          () => end(resolve),
          (failure: unknown) => end(() => reject(failure)),
        );
      } else {
        end(() => reject(new NotSent(error ?? undefined)));
      }
    });
  });
}

function run(connection: MySqlConnection, statement: SqlStatement): Promise<readonly Row[]> {
  return new Promise((resolve, reject) => {
    sendTo(connection, statement, (error, reply) => (error ? reject(error) : resolve(reply as readonly Row[])));
  });
}

/** The statement fails as well. */
function ignore(): void {}
