import type { Settings } from '../settings.js';
import { StartUpError } from '../start-up.error.js';
import type { Database } from './database.js';
import { PgliteDatabase } from './pglite.database.js';
import { PostgresDatabase } from './postgres.database.js';
import { createSchema } from './schema.js';

/** The database of the application, with its table; throws `StartUpError` where it does not answer. */
export async function openDatabase({ databaseUrl }: Settings): Promise<Database> {
  return prepare(databaseUrl === undefined ? new PgliteDatabase() : new PostgresDatabase(databaseUrl), createSchema);
}

/** Makes the tables; throws `StartUpError` where the database does not answer. */
export async function prepare(database: Database, createTables: (database: Database) => Promise<void>): Promise<Database> {
  try {
    await createTables(database);
  } catch (cause) {
    throw new StartUpError(`${database.description}: ${reasonOf(cause)}. Check DATABASE_URL, or leave it out for an embedded database.`, {
      cause,
    });
  }
  return database;
}

/** A host with several addresses gives an error without a message, whose parts have one each. */
function reasonOf(error: unknown): string {
  const { message, errors = [] } = error as Error & { readonly errors?: readonly unknown[] };
  return message || errors.map(reasonOf).join('; ');
}
