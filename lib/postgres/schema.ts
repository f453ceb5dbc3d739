import { createHash } from 'node:crypto';
import { checkOptions } from '../core/words/check-options.js';
import type { Sql } from '../sql/dialect.js';
import { FORMER, FUNCTIONS } from './functions.js';
import { ROW_LOCK } from './row-lock/row-lock-table.js';
import { checkSchema, qualified, type SchemaOptions } from './schema-name.js';
import { TABLES } from './tables.js';

/** Rises with every change of the tables and functions that processes of another version could not work with. */
export const SCHEMA_VERSION = 1;

/**
 * Rises with every other change of the functions and tables: an older process leaves alone what a newer process has
 * made.
 */
const SCHEMA_REVISION = 6;

/** All parts of a schema of this library, but the function `version`. `SCHEMA` stands for its name. */
const PARTS = [TABLES, FORMER, ...FUNCTIONS, ROW_LOCK];

/** Which source a schema was made from: the end of its `version()`. It changes also where `SCHEMA_VERSION` does not. */
const FINGERPRINT = createHash('sha256').update(PARTS.join()).digest('hex').slice(0, 16);

/**
 * Asks whether a schema has the parts that this library would make, or later parts of the same version. `$1` is the
 * schema, `$2` the fingerprint, and `$3` the revision.
 */
const MADE = `
SELECT EXISTS (
    SELECT FROM pg_proc WHERE oid = to_regprocedure(quote_ident($1) || '.version()') AND (
      prosrc LIKE '%' || $2
      OR prosrc LIKE 'SELECT ${SCHEMA_VERSION} -- %' AND substring(prosrc from ' revision ([0-9]+),')::int > $3
    )
  )
  AND to_regclass(quote_ident($1) || '.lease') IS NOT NULL AND to_regclass(quote_ident($1) || '.done') IS NOT NULL
  AND to_regclass(quote_ident($1) || '.shared') IS NOT NULL AND to_regclass(quote_ident($1) || '.row_lock') IS NOT NULL AS is_made
`;

/** The statement that asks for it, and its values. */
export function madeQuery(schema: string): Sql {
  return { sql: MADE, values: [schema, FINGERPRINT, SCHEMA_REVISION] };
}

/**
 * The SQL that creates or updates the tables and functions of the locks, for those who migrate by hand:
 * `ensureSchema()` runs it. It may be run again, and drops no data. It is a transaction of its own. Throws
 * `LockConfigurationError` where the name of the schema would have to be escaped.
 */
export function schemaSql(options: SchemaOptions = {}): string {
  checkOptions('schemaSql', options, { schema: true });
  const schema = checkSchema(options.schema);
  return [begin(schema), ...PARTS, COMMIT].map((sql) => qualified(sql, schema)).join('\n\n');
}

/**
 * Processes that make a schema at once do so one after the other, and none undoes the parts that a later version has
 * made.
 */
function begin(schema: string): string {
  return `BEGIN;

DO $do$
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('distributed_lock schema ${schema}', 0));
  IF to_regnamespace('"${schema}"') IS NULL THEN
    CREATE SCHEMA "${schema}";
  ELSIF to_regprocedure('SCHEMA.version()') IS NOT NULL THEN
    IF SCHEMA.version() > ${SCHEMA_VERSION} THEN
      RAISE EXCEPTION 'the schema "${schema}" has version %, and this library knows ${SCHEMA_VERSION}', SCHEMA.version();
    END IF;
  END IF;
END
$do$;`;
}

const COMMIT = `CREATE OR REPLACE FUNCTION SCHEMA.version() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT ${SCHEMA_VERSION} -- revision ${SCHEMA_REVISION}, ${FINGERPRINT}';

COMMIT;
`;
