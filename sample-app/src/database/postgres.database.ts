import type { Pool } from 'pg';
import { Database, type Query } from './database.js';
import { describePostgres } from './describe-postgres.js';
import { openPool } from './open-pool.js';

/** A PostgreSQL server, for any number of processes. */
export class PostgresDatabase extends Database {
  readonly description: string;
  readonly #pool: Pool;

  constructor(url: string) {
    super();
    this.description = describePostgres(url);
    this.#pool = openPool(PostgresDatabase.name, { connectionString: url });
  }

  protected async run(...[sql, params]: Parameters<Query>): Promise<readonly unknown[]> {
    return (await this.#pool.query(sql, [...params])).rows as readonly unknown[];
  }

  protected async runTransaction<T>(body: (query: Query) => Promise<T>): Promise<T> {
    const client = await this.#pool.connect();
    let broken: unknown;
    try {
      await client.query('BEGIN');
      const result = await body(async (sql, params) => (await client.query(sql, [...params])).rows as readonly unknown[]);
      await client.query('COMMIT');
      return result;
    } catch (error) {
      await client.query('ROLLBACK').catch((failure: unknown) => {
        broken = failure;
      });
      throw error;
    } finally {
      // A connection that cannot roll back does not go back into the pool.
      client.release(broken !== undefined);
    }
  }

  protected close(): Promise<void> {
    return this.#pool.end();
  }
}
