import type { Answered, Dialect, Sql } from '../sql/dialect.js';
import { NotReplicated, REPEAT } from '../sql/errors.js';
import type { Operation } from '../sql/operation.js';
import { RefusedRights } from '../sql/refused-rights.js';
import { cancelStatement } from './cancel.js';
import { callOf } from './functions/sql-function.js';
import type { PoolState, PostgresClient, PostgresPool } from './postgres-pool.js';
import { qualified } from './schema-name.js';
import { isInside, settle } from './transaction-status.js';

/** The server's time in ms since 1970. */
export const NOW = '(extract(epoch FROM pg_catalog.clock_timestamp()) * 1000)::bigint';

/** In another encoding, the server would take the bytes of a key for the bytes of another key. */
const ENCODING = 'pg_catalog.pg_client_encoding()';

/** SQLSTATE codes that no repetition changes: https://www.postgresql.org/docs/current/errcodes-appendix.html. */
const HOPELESS = /^(22|28|3D|3F|42|P0001)/;
/** Two transactions conflicted: nothing was done, and the statement may be sent again at once. */
const CONFLICT = /^40(001|P01)$/;
/** Another transaction has locked a row or a table. Nothing was done. */
const LOCKED = '55P03';
/** The server has no connection left. */
const FULL = '53300';
/**
 * The connection was ended, by this side or behind a pool on the way (58000): the last statement may have been
 * committed before.
 */
const ENDED = /^(08|25P0[34]|40003|57000|57P|58000|XX)/;
/**
 * The severities that end the connection, as the server writes them in English and in languages with the same words.
 */
const FATAL = /^(FATAL|PANIC)$/;
/** The statement was sent into a transaction of somebody else that had failed. Nothing was done. */
const ABORTED = '25P02';
/** The session is read-only, in a transaction of somebody else, or has too short a `statement_timeout`. */
const UNFIT = /^(25|57014)/;
/** The user lacks a right, or a policy hides rows from it. */
const NO_RIGHT = '42501';

/** The last user of the connection left it in a state in which no statement of this library is carried out. */
class Unfit extends Error {}

/** PostgreSQL by a pool of `pg`, with the locks in a schema. */
export class PostgresDialect implements Dialect<PostgresClient> {
  readonly name = 'PostgreSQL';
  readonly store = 'PostgresLockStore';
  readonly table: string;
  readonly #pool: PostgresPool & PoolState;
  readonly #schema: string;
  readonly #refusals = new RefusedRights();

  constructor(pool: PostgresPool & PoolState, schema: string) {
    this.#pool = pool;
    this.#schema = schema;
    this.table = `${schema}.lease`;
  }

  /** The last user of a connection may have sent a COMMIT, and not have waited for it: it is waited for here. */
  connect(connected: (error: Error | undefined, client: PostgresClient | undefined) => void): void {
    this.#pool.connect((error, client) => {
      if (!client || !isInside(client)) {
        connected(error, client);
        return;
      }
      settle(client, () => connected(undefined, client));
    });
  }

  whyNone(limitMs: number): string {
    const { options, totalCount = 0, idleCount = 0 } = this.#pool;
    const { max = Infinity } = options;
    const ms = Math.max(0, Math.round(limitMs));
    return totalCount >= max && idleCount === 0
      ? `all ${max} of the pool have been in use for ${ms} ms; raise its max, or give the locks a pool of their own`
      : `none could be made within ${ms} ms`;
  }

  send(client: PostgresClient, { sql, values }: Sql, answered: Answered): void {
    if (isInside(client)) {
      answered(new Unfit());
      return;
    }
    // The commit of the statement did not wait for a standby, because an administrator cancelled that wait.
    let isLocal = false;
    const noticed = (notice: Error): void => {
      isLocal ||= isLocalOnly(notice);
    };
    client.on('notice', noticed);
    client.query(sql, values, (error, result) => {
      client.removeListener('notice', noticed);
      if (error) {
        answered(error);
      } else if (isInside(client) || (values && (result.rows[0]?.['encoding'] ?? 'UTF8') !== 'UTF8')) {
        // A BEGIN was on its way when the statement was sent. The effect of the statement ends with that transaction.
        answered(new Unfit());
      } else {
        answered(isLocal ? new NotReplicated() : undefined, result.rows);
      }
    });
  }

  /** Ends a connection that is inside a transaction. */
  release(client: PostgresClient, end: Error | boolean): void {
    client.release(end || isInside(client));
  }

  cancel(client: PostgresClient, isAnswered: () => boolean): Promise<void> {
    return cancelStatement(this.#pool, client, isAnswered);
  }

  isInTransaction(error: Error): boolean {
    return error instanceof Unfit || stateOf(error) === ABORTED;
  }

  /**
   * A script that failed leaves its transaction open. A connection to a standby would be the next one that the pool
   * gives; a new connection may lead to the new primary.
   */
  mayStay(error: Error, { values }: Sql): boolean {
    const state = stateOf(error) ?? '';
    const isFit = !UNFIT.test(state) && !(state === NO_RIGHT && this.#refusals.isDue());
    return error instanceof NotReplicated || (values !== undefined && this.isRefusal(error) && isFit);
  }

  isRefusal(error: Error): boolean {
    const state = stateOf(error);
    return state !== undefined && !ENDED.test(state) && !('severity' in error && FATAL.test(String(error.severity)));
  }

  isConflict(error: unknown): boolean {
    return error instanceof Error && CONFLICT.test(stateOf(error) ?? '');
  }

  cureOf(error: Error): string | undefined {
    const state = stateOf(error) ?? '';
    if (!HOPELESS.test(state)) {
      return undefined;
    }
    if (state.startsWith('28') || state.startsWith('3D')) {
      return 'Correct the user, password and database of the pool given to PostgresLockStore.';
    }
    if (state === NO_RIGHT) {
      return this.#grantFor(error.message);
    }
    if (state === 'P0001') {
      return 'Let the processes with the later version of nestjs-distributed-lock call ensureSchema().';
    }
    return state.startsWith('22')
      ? 'The database of the locks needs the encoding UTF8.'
      : `Call ensureSchema() of the store, or run what schemaSql() returns, to create the schema "${this.#schema}" in its present version.`;
  }

  isOfKey(error: Error): boolean {
    return stateOf(error)?.startsWith('22') === true;
  }

  #grantFor(refusal: string): string {
    if (/row-level security/.test(refusal)) {
      return `Let the policies on the tables of the schema "${this.#schema}" show the user all rows, or give it BYPASSRLS.`;
    }
    if (/for function /.test(refusal)) {
      return `Grant the user EXECUTE on the functions of the schema "${this.#schema}".`;
    }
    const connect = /for database /.test(refusal) ? 'CONNECT on the database, ' : '';
    return `Grant the user ${connect}USAGE on the schema "${this.#schema}", and SELECT, INSERT, UPDATE and DELETE on its tables; or CREATE on the database, to make it.`;
  }

  nextStep(error: Error): string {
    if (stateOf(error) === FULL) {
      return '. Raise max_connections of the server, or lower the max of the pools that lead to it.';
    }
    return `${stateOf(error) === LOCKED ? ` (${WHO_LOCKS})` : ''}. ${REPEAT}`;
  }

  callOf(operation: Operation): string {
    return qualified(
      `SELECT CASE ${ENCODING} WHEN 'UTF8' THEN ${callOf(operation)} END AS reply, ${NOW} AS now, ${ENCODING} AS encoding`,
      this.#schema,
    );
  }

  answerIn(reply: unknown): { readonly answer: unknown; readonly serverMs: number } {
    const [row] = reply as readonly { readonly reply?: string | null; readonly now?: unknown }[];
    return { answer: JSON.parse(row?.reply ?? 'null'), serverMs: Number(row?.now) };
  }
}

const WHO_LOCKS = 'another transaction has locked the row or the table, or its commit waits for a standby';

/** The SQLSTATE of an error that the server answered. */
function stateOf(error: Error): string | undefined {
  return 'code' in error && 'severity' in error && typeof error.code === 'string' ? error.code : undefined;
}

/** Whether a notice says that a commit did not wait for its standbys. Its text is in the server's language. */
function isLocalOnly(notice: Error): boolean {
  return 'routine' in notice && notice.routine === 'SyncRepWaitForLSN';
}
