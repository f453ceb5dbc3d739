import { wrongOption } from '../core/words/check-options.js';

/** Where the locks are in a database. */
export interface SchemaOptions {
  /** The schema of the tables and functions, which has nothing else. Default: `'distributed_lock'`. */
  schema?: string | undefined;
}

/** The name unchanged. Throws `LockConfigurationError` where it would have to be escaped. */
export function checkSchema(schema: unknown = 'distributed_lock', place = 'PostgresLockStore'): string {
  if (typeof schema !== 'string' || !/^(?!pg_)[a-z_][a-z0-9_]{0,62}$/.test(schema)) {
    throw wrongOption(`${place}: schema`, schema, "Use up to 63 small letters, digits and underscores, such as 'distributed_lock'.");
  }
  return schema;
}

/** Puts the name of the schema where SQL has `SCHEMA.`. */
export function qualified(sql: string, schema: string): string {
  return sql.replaceAll('SCHEMA.', `"${schema}".`);
}
