import type { Database } from '../database/database.js';
import { prepare } from '../database/open-database.js';
import { PostgresDatabase } from '../database/postgres.database.js';
import { runAlone } from '../database/schema.js';
import type { SharedBalance } from './shared-balance.js';

/** The rows of a demo are of no use to the next one. */
const TABLES = [
  'CREATE TABLE IF NOT EXISTS demo_balances (account text PRIMARY KEY, amount bigint NOT NULL, written_at timestamptz NOT NULL)',
  `DELETE FROM demo_balances WHERE written_at < now() - interval '1 minute'`,
];

/** A plain SELECT and a plain INSERT or UPDATE, for tasks in several processes. */
export class PostgresBalance implements SharedBalance {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async read(account: string): Promise<number> {
    const [row] = await this.#database.query<{ amount: string }>('SELECT amount FROM demo_balances WHERE account = $1', [account]);
    return Number(row?.amount ?? 0);
  }

  async write(account: string, amount: number): Promise<void> {
    const statement =
      'INSERT INTO demo_balances VALUES ($1, $2, now()) ON CONFLICT (account) DO UPDATE SET amount = $2, written_at = now()';
    await this.#database.query(statement, [account, amount]);
  }

  onApplicationShutdown(): Promise<void> {
    return this.#database.onApplicationShutdown();
  }
}

/** Throws `StartUpError` where there is no server. */
export async function connectPostgresBalance(url: string): Promise<PostgresBalance> {
  return new PostgresBalance(await prepare(new PostgresDatabase(url), (database) => runAlone(database, TABLES)));
}
