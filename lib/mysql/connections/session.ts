import { ignore } from '../../sql/statement.js';
import { isRefusal } from '../mysql-errors.js';
import type { CallbackPool, MySqlConnection } from '../mysql-pool.js';
import { textOf } from '../rows.js';
import { ask } from './connection.js';

/** How long a statement may take that ends another statement, or finds out which statement to end, in milliseconds. */
const LIMIT_MS = 1_000;
/** How long the server may take to say which one it is, in milliseconds: nobody waits for it. */
const IDENTIFY_MS = 30_000;

/**
 * Asks to which run of which server a connection leads: a server that has started again counts its connections anew.
 * The first numbers of `uuid_short` are the time of its start; its status would say so too, and costs more to read.
 * Also asks for the number that the server gives this connection, and for the statement of the connection `id`, which
 * MariaDB can end by its number; NULL where there is none. Each server reads the part for the other server as a
 * comment.
 */
function sessionStatement(id: number): string {
  return `SELECT concat_ws(' ', @@hostname, @@port, @@server_id, @@datadir, /*!80000 @@server_uuid, */ uuid_short() >> 24) AS run,
  connection_id() AS id /*M!, (SELECT query_id FROM information_schema.processlist WHERE id = ${id} AND command <> 'Sleep') AS query_id */
LIMIT 1`;
}

/** The run of the server that each connection leads to; '' where it is not known. */
const runs = new WeakMap<MySqlConnection, string>();

/**
 * Asks once, before the first statement on a connection, which server it leads to: another server may have the address
 * later. A proxy that numbers connections by itself may serve each statement elsewhere, so nothing is known behind it.
 */
export function identify(connection: MySqlConnection): void {
  if (!runs.has(connection)) {
    runs.set(connection, '');
    ask(connection, sessionStatement(0), IDENTIFY_MS)
      .then(([row]) => Number(row?.['id']) === connection.threadId && runs.set(connection, textOf(row?.['run'])))
      .catch(ignore);
  }
}

/**
 * Ends the statement of a connection by another connection, if there is one in time that leads to the same run of the
 * same server: elsewhere the number of the connection is that of a stranger. Where the network is gone the server ends
 * the statement itself.
 */
export function endStatement(pool: CallbackPool, target: MySqlConnection, isOver: () => boolean): void {
  const run = runs.get(target);
  if (!run) {
    return;
  }
  pool.getConnection((_error, connection) => {
    if (!connection || isOver()) {
      connection?.release();
      return;
    }
    connection.on('error', ignore);
    endBy(connection, run, Number(target.threadId), isOver).then(
      () => {
        connection.removeListener('error', ignore);
        connection.release();
      },
      () => connection.destroy(),
    );
  });
}

async function endBy(connection: MySqlConnection, run: string, id: number, isOver: () => boolean): Promise<void> {
  const [row] = await ask(connection, sessionStatement(id), LIMIT_MS);
  const query = row?.['query_id'];
  if (textOf(row?.['run']) === run && query !== null && !isOver()) {
    // The statement may have ended meanwhile.
    await ask(connection, `KILL QUERY ${query === undefined ? id : `ID ${Number(query)}`}`, LIMIT_MS).catch((error: unknown) => {
      if (!isRefusal(error)) {
        throw error;
      }
    });
  }
}
