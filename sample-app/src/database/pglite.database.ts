import { PGlite } from '@electric-sql/pglite';
import { Database, type Query } from './database.js';

/** PostgreSQL inside this process, in memory: nothing to install, and gone with the process. */
export class PgliteDatabase extends Database {
  readonly description = 'PGlite: PostgreSQL embedded in this process, in memory';
  readonly #pglite: PGlite;

  constructor(pglite = new PGlite()) {
    super();
    this.#pglite = pglite;
  }

  protected async run(...[sql, params]: Parameters<Query>): Promise<readonly unknown[]> {
    return (await this.#pglite.query(sql, [...params])).rows;
  }

  protected runTransaction<T>(body: (query: Query) => Promise<T>): Promise<T> {
    return this.#pglite.transaction((transaction) => body(async (sql, params) => (await transaction.query(sql, [...params])).rows));
  }

  protected close(): Promise<void> {
    return this.#pglite.close();
  }
}
