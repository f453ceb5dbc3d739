import { createHash } from 'node:crypto';
import { ACQUIRE } from './procedures/acquire.js';
import { JOIN } from './procedures/join.js';
import { creationOf, REFRESH, type Procedure } from './procedures/procedure.js';
import { LEAVE } from './procedures/queue.js';
import { EXCHANGE, FORCE_RELEASE, RELEASE } from './procedures/release.js';
import { RENEW } from './procedures/renew.js';
import { NUMBERED, PURGE, TIDY } from './procedures/upkeep.js';
import { NAMES, qualified, TABLES } from './tables.js';

/**
 * The operations of the store, as the scripts are the operations of the Redis store. `LockOperations` describes each of
 * them.
 */
export const OPERATIONS = { ACQUIRE, EXCHANGE, JOIN, RENEW, RELEASE, LEAVE, FORCE_RELEASE, TIDY, PURGE, NUMBERED } as const;

export const PROCEDURES: readonly Procedure[] = [REFRESH, ...Object.values(OPERATIONS)];

/**
 * The `sql_mode` that the procedures are written for. A procedure keeps the sql_mode of the session that creates it:
 * with another mode it compares otherwise, takes an empty text for NULL, or cuts a value off.
 */
export const SQL_MODE = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION';

/**
 * Another source has other names: a new version of this library makes its procedures beside those that older processes
 * call.
 */
const FINGERPRINT = createHash('sha256')
  .update([SQL_MODE, ...PROCEDURES.map((procedure) => creationOf(procedure, procedure.name))].join())
  .digest('hex')
  .slice(0, 8);

/** The name of a procedure; with the name of its database, where one is given. */
export function procedureName({ name }: { readonly name: string }, database?: string): string {
  return qualified(`${NAMES}${name}_${FINGERPRINT}`, database);
}

/**
 * The statements that create the tables and procedures of the locks, for those who migrate by hand: run them on one
 * connection, one after the other. They set its `sql_mode` first, and put it back at the end. They drop no data. A
 * procedure that is there already gives error 1304, which means that nothing is to be done. Procedures are named after
 * their source, so that procedures of another version stay as they are.
 */
export function schemaSql(): string[] {
  return [
    `SET @distributed_lock_sql_mode = @@SESSION.sql_mode`,
    setMode(`'${SQL_MODE}'`),
    ...creations(),
    setMode('@distributed_lock_sql_mode'),
  ];
}

/** The statements that create the missing parts, in a session with that `sql_mode`. */
export function creations(database?: string): string[] {
  return [
    ...TABLES.map(
      ({ name, columns }) => `CREATE TABLE IF NOT EXISTS ${qualified(name, database)} (${columns}\n) ENGINE = InnoDB ROW_FORMAT = DYNAMIC`,
    ),
    ...PROCEDURES.map((procedure) => creationOf(procedure, procedureName(procedure, database))),
  ];
}

export function setMode(mode: string): string {
  return `SET SESSION sql_mode = ${mode}`;
}
