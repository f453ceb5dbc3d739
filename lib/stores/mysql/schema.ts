import { createHash } from 'node:crypto';
import { ACQUIRE } from './procedures/acquire.js';
import { JOIN } from './procedures/join.js';
import { FORCE_RELEASE } from './procedures/operator.js';
import { creationOf, type Procedure } from './procedures/procedure.js';
import { LEAVE } from './procedures/queue.js';
import { EXCHANGE, RELEASE } from './procedures/release.js';
import { RENEW } from './procedures/renew.js';
import { NUMBERED, PURGE, TIDY } from './procedures/upkeep.js';
import { NAMES, TABLES } from './tables.js';

/**
 * The operations of the store: what the scripts are to the Redis store. Each may run twice, and all but `force_release`, which nothing
 * repeats, answer the second time as they did the first time.
 */
export const PROCEDURES: readonly Procedure[] = [
  ACQUIRE, EXCHANGE, JOIN, RENEW, RELEASE, LEAVE, FORCE_RELEASE, TIDY, PURGE, NUMBERED,
] as unknown as readonly Procedure[]; // prettier-ignore

/** Another source has other names: a new version of this library makes its procedures beside those that older processes call. */
const FINGERPRINT = createHash('sha256')
  .update(PROCEDURES.map((procedure) => creationOf(procedure, procedure.name)).join())
  .digest('hex')
  .slice(0, 8);

/** The name of a procedure; with the name of its database, where one is given. */
export function procedureName({ name }: { readonly name: string }, database?: string): string {
  return qualified(`${NAMES}${name}_${FINGERPRINT}`, database);
}

/** What a database has to have, to count. */
export const MADE = `SELECT
  (SELECT count(*) FROM information_schema.routines WHERE routine_schema = ? AND routine_name LIKE '${NAMES.replaceAll('_', '\\_')}%${FINGERPRINT}') AS procedures,
  (SELECT count(*) FROM information_schema.tables WHERE table_schema = ? AND table_name IN (${TABLES.map(({ name }) => `'${name}'`).join(', ')})) AS tables`;

/** Whether the counts of `MADE` are those of a whole schema. */
export function isWhole(row: Readonly<Record<string, unknown>> | undefined): boolean {
  return Number(row?.['procedures']) === PROCEDURES.length && Number(row?.['tables']) === TABLES.length;
}

/**
 * The statements that create the tables and procedures of the locks, one after the other, for those who migrate by hand: what
 * `ensureSchema()` runs. They drop no data. A procedure that is there already is error 1304, which means that nothing is to be done.
 * Procedures are named after their source, so that those of another version stay as they are.
 */
export function schemaSql(): string[] {
  return statementsFor();
}

/** The same for a database that is named. */
export function statementsFor(database?: string): string[] {
  return [
    ...TABLES.map(({ name, columns }) => `CREATE TABLE IF NOT EXISTS ${qualified(name, database)} (${columns}\n) ENGINE = InnoDB`),
    ...PROCEDURES.map((procedure) => creationOf(procedure, procedureName(procedure, database))),
  ];
}

function qualified(name: string, database: string | undefined): string {
  return database === undefined ? name : `\`${database.replaceAll('`', '``')}\`.${name}`;
}
