import type { Database } from './database.js';

/** Any number that nothing else in the database uses for an advisory lock. */
const SCHEMA_LOCK = 20_260_001;

/**
 * `amount` is in hundredths: money is never a float. `fence` is the highest fencing token that has touched the row.
 */
const BALANCES = `
  CREATE TABLE IF NOT EXISTS balances (
    customer_id text PRIMARY KEY,
    amount bigint NOT NULL CHECK (amount >= 0),
    fence bigint NOT NULL DEFAULT 0
  )`;

/** Customers 1 to 10 start with 100.00; a restart leaves balances as they are. */
const CUSTOMERS = `
  INSERT INTO balances (customer_id, amount)
  SELECT number::text, 10000 FROM generate_series(1, 10) AS number
  ON CONFLICT DO NOTHING`;

/** `total` is the sum of the customer's rewards. */
const POINTS = `
  CREATE TABLE IF NOT EXISTS points (
    customer_id text PRIMARY KEY REFERENCES balances,
    total int NOT NULL
  )`;

const REWARDS = `
  CREATE TABLE IF NOT EXISTS rewards (
    customer_id text NOT NULL REFERENCES balances,
    points int NOT NULL
  )`;

/** Makes the tables and the customers where they are missing. */
export function createSchema(database: Database): Promise<void> {
  return runAlone(database, [BALANCES, CUSTOMERS, POINTS, REWARDS]);
}

/** Two processes may start at once, and CREATE TABLE IF NOT EXISTS alone fails when they race. */
export async function runAlone(database: Database, statements: readonly string[]): Promise<void> {
  await database.transaction(async () => {
    await database.query('SELECT pg_advisory_xact_lock($1)', [SCHEMA_LOCK]);
    for (const statement of statements) {
      await database.query(statement);
    }
  });
}
