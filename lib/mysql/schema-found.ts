import { LockConfigurationError } from '../core/words/errors.js';
import type { Row } from '../sql/dialect.js';
import { textOf } from './rows.js';
import { PROCEDURES, procedureName, SQL_MODE } from './schema.js';
import { TABLES } from './tables.js';

const listOf = (names: readonly string[]): string => names.map((name) => `'${name}'`).join(', ');

/** The parts of the schema that a database has. The value of both statements is the name of the database. */
export const PROCEDURES_FOUND = `SELECT routine_name AS name, sql_mode AS mode FROM information_schema.routines
WHERE routine_schema = ? AND routine_name IN (${listOf(PROCEDURES.map((procedure) => procedureName(procedure)))}) LIMIT 1000`;
export const COLUMNS_FOUND = `SELECT c.table_name AS table_name, c.column_name AS column_name, c.data_type AS data_type, t.engine AS engine
FROM information_schema.columns AS c JOIN information_schema.tables AS t ON t.table_schema = c.table_schema AND t.table_name = c.table_name
WHERE c.table_schema = ? AND c.table_name IN (${listOf(TABLES.map(({ name }) => name))}) LIMIT 1000`;

/** The schema as a database has it, as far as the user may see it. */
export interface FoundSchema {
  readonly isWhole: boolean;
  /** The procedures that were made with another `sql_mode`, and this mode of one of them. */
  readonly strange: readonly string[];
  readonly mode: string;
}

/** Reads it. Throws `LockConfigurationError` for a table that the procedures could not use. */
export function readSchema(procedures: readonly Row[], columns: readonly Row[], database: string): FoundSchema {
  const there = TABLES.filter((table) => isThere(table, columns, database));
  const strange = procedures.filter(({ mode }) => textOf(mode) !== SQL_MODE);
  return {
    isWhole: there.length === TABLES.length && procedures.length === PROCEDURES.length && strange.length === 0,
    strange: strange.map(({ name }) => textOf(name)),
    mode: textOf(strange[0]?.['mode']),
  };
}

/** Throws `LockConfigurationError` where a part is missing, or may not be seen, or was made with another `sql_mode`. */
export function checkSchema({ isWhole, strange, mode }: FoundSchema, database: string): void {
  if (strange.length > 0) {
    throw strangeMode(mode, database);
  }
  if (!isWhole) {
    throw new LockConfigurationError(
      `MySqlLockStore: the database "${database}" does not have all tables and procedures of the locks in their present version, or the user may ` +
        'not use them. Call ensureSchema() of the store, or run what schemaSql() returns; and grant the user SELECT, INSERT, UPDATE and DELETE on the ' +
        'tables distributed_lock_*, and EXECUTE on the procedures.',
    );
  }
}

/** The error of procedures that mean something else than the library; `cause`: why they stay. */
export function strangeMode(mode: string, database: string, cause?: unknown): LockConfigurationError {
  return new LockConfigurationError(
    `MySqlLockStore: procedures of the locks in the database "${database}" were made with the sql_mode "${mode}", with which they do not do what ` +
      'they should. Call ensureSchema() of the store with a user who has CREATE ROUTINE and ALTER ROUTINE there: it makes them anew. By hand, drop ' +
      'them, and run what schemaSql() returns on one connection.',
    '',
    cause === undefined ? undefined : { cause },
  );
}

/** Whether a table is there. Throws where it is not the one that the procedures mean. */
function isThere({ name, columns }: (typeof TABLES)[number], found: readonly Row[], database: string): boolean {
  const rows = found.filter((row) => textOf(row['table_name']) === name);
  const known = new Set(rows.map((row) => `${textOf(row['column_name'])} ${textOf(row['data_type']).toUpperCase()}`));
  const missing = [...columns.matchAll(/^ {2}([a-z_]+ [A-Z]+)/gm)]
    .map(([, column]) => column as string)
    .find((column) => !known.has(column));
  const engine = textOf(rows[0]?.['engine']);
  if (rows.length > 0 && (missing !== undefined || engine !== 'InnoDB')) {
    throw new LockConfigurationError(
      `MySqlLockStore: the table ${name} in the database "${database}" is not that of this version: ` +
        `${missing === undefined ? `its engine is ${engine}` : `it has no column ${missing}`}. End all processes that lock with it, drop it, and call ` +
        'ensureSchema() of the store, or run what schemaSql() returns; or give the locks a database of their own.',
    );
  }
  return rows.length > 0;
}
