import { createPool, type Pool, type RowDataPacket } from 'mysql2/promise';
import { describeLockPlace } from '../lock-place.js';
import { StartUpError } from '../start-up.error.js';
import type { SharedBalance } from './shared-balance.js';

/** The rows of a demo are of no use to the next one. */
const TABLES = [
  'CREATE TABLE IF NOT EXISTS demo_balances (account VARCHAR(100) PRIMARY KEY, amount BIGINT NOT NULL, written_at TIMESTAMP NOT NULL)',
  'DELETE FROM demo_balances WHERE written_at < now() - INTERVAL 1 MINUTE',
];

/** A plain SELECT and a plain INSERT or UPDATE, for tasks in several processes. */
export class MySqlBalance implements SharedBalance {
  readonly #pool: Pool;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async read(account: string): Promise<number> {
    const [[row]] = await this.#pool.query<RowDataPacket[]>('SELECT amount FROM demo_balances WHERE account = ?', [account]);
    return Number(row?.['amount'] ?? 0);
  }

  async write(account: string, amount: number): Promise<void> {
    const statement = 'INSERT INTO demo_balances VALUES (?, ?, now()) ON DUPLICATE KEY UPDATE amount = ?, written_at = now()';
    await this.#pool.query(statement, [account, amount, amount]);
  }

  onApplicationShutdown(): Promise<void> {
    return this.#pool.end();
  }
}

/** Throws `StartUpError` where there is no server. */
export async function connectMySqlBalance(url: string): Promise<MySqlBalance> {
  const pool = createPool({ uri: url, connectTimeout: 5_000 });
  try {
    for (const statement of TABLES) {
      await pool.query(statement);
    }
  } catch (error) {
    await pool.end();
    const place = describeLockPlace({ store: 'mysql', url });
    throw new StartUpError(`${place}: ${(error as Error).message}. Check MYSQL_URL, or leave it out.`, { cause: error });
  }
  return new MySqlBalance(pool);
}
