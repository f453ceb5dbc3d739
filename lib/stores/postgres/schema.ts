import { createHash } from 'node:crypto';
import { FUNCTIONS } from './functions.js';
import { ROW_LOCK } from './row-lock-table.js';
import { checkSchema, qualified, type SchemaOptions } from './schema-name.js';

/** Rises with every change of the tables and functions that processes of another version could not work with. */
export const SCHEMA_VERSION = 1;

/** Rows of `lease` change all the time, and their key never: with room on its page, a change touches no index. */
const TABLES = `CREATE TABLE IF NOT EXISTS SCHEMA.lease (
  key text COLLATE "C" PRIMARY KEY,
  owner text,
  fence bigint NOT NULL DEFAULT 0,
  ttl_ms bigint,
  since timestamptz,
  holder text,
  ends timestamptz NOT NULL,
  holds text[],
  processes text[],
  turn text,
  queue text[],
  polling text[],
  queue_ends timestamptz
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

CREATE TABLE IF NOT EXISTS SCHEMA.done (
  hold text COLLATE "C" PRIMARY KEY,
  answer int NOT NULL,
  ends timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- CREATE INDEX IF NOT EXISTS would wait for a VACUUM, and all locks for it.
DO $do$
BEGIN
  IF to_regclass('SCHEMA.done_ends') IS NULL THEN
    CREATE INDEX done_ends ON SCHEMA.done (ends);
  END IF;
END
$do$;`;

/**
 * Which tables and functions of ours a schema has: the end of its `version()`. It changes with their source, also
 * where `SCHEMA_VERSION` does not.
 */
const FINGERPRINT = createHash('sha256')
  .update([TABLES, ...FUNCTIONS, ROW_LOCK].join())
  .digest('hex')
  .slice(0, 16);

/** Asks whether a schema has what this library would make; `$1` is the schema, and `$2` the fingerprint. */
const MADE = `
SELECT EXISTS (SELECT FROM pg_proc WHERE oid = to_regprocedure(quote_ident($1) || '.version()') AND prosrc LIKE '%' || $2)
  AND to_regclass(quote_ident($1) || '.lease') IS NOT NULL AND to_regclass(quote_ident($1) || '.done') IS NOT NULL
  AND to_regclass(quote_ident($1) || '.row_lock') IS NOT NULL AS is_made
`;

/** The statement that asks for it, and its values. */
export function madeQuery(schema: string): { readonly text: string; readonly values: readonly unknown[] } {
  return { text: MADE, values: [schema, FINGERPRINT] };
}

/**
 * The SQL that creates or updates the tables and functions of the locks, for those who migrate by hand: what `ensureSchema()` runs.
 * It may be run again, and drops no data. It is a transaction of its own. Throws `LockConfigurationError` for a name that is none.
 */
export function schemaSql(options: SchemaOptions = {}): string {
  const schema = checkSchema(options.schema);
  return [begin(schema), TABLES, ...FUNCTIONS, ROW_LOCK, commit].map((sql) => qualified(sql, schema)).join('\n\n');
}

/** One process after the other, since many may create it at once; and none undoes what a later version has made. */
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

const commit = `CREATE OR REPLACE FUNCTION SCHEMA.version() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT ${SCHEMA_VERSION} -- ${FINGERPRINT}';

COMMIT;
`;
