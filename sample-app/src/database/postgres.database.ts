import { Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { Database, type Query } from './database.js';
import { describePostgres } from './describe-postgres.js';

/** A PostgreSQL server, for any number of processes. */
export class PostgresDatabase extends Database {
  readonly description: string;
  readonly #pool: Pool;

  constructor(url: string) {
    super();
    this.description = describePostgres(url);
    this.#pool = new Pool({ connectionString: url, connectionTimeoutMillis: 5_000 });
    // A connection that breaks while idle is replaced; without a listener the process would end.
    this.#pool.on('error', (error) => new Logger(PostgresDatabase.name).warn(`An idle connection was lost: ${error.message}`));
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
