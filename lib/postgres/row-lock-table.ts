import { DEFAULT_SCHEMA, quoteSchema } from './schema-name.js';

/** The SQLSTATE with which `lock_rows` refuses an isolation level; of a class that PostgreSQL leaves to its users. */
export const WRONG_ISOLATION = 'LK001';

/**
 * The SQL of what `withRowLock` needs, for those who migrate by hand: a table with one row for each key, and the function
 * that locks rows. It may be run again.
 *
 * The rows hold nothing. Those that nobody has locked may be deleted at any time: the next caller makes them anew.
 *
 * `lock_rows(keys, wait_ms)` locks the rows in the order given until the transaction ends, and makes those that are missing.
 * Whoever meets a row that another transaction is making waits for that one's end, and makes it itself if that one was
 * rolled back. A row that was deleted while somebody waited for it is made again.
 */
export function rowLockSql(schema: string = DEFAULT_SCHEMA): string {
  const quoted = quoteSchema(schema, 'rowLockSql');
  return `CREATE SCHEMA IF NOT EXISTS ${quoted};

CREATE TABLE IF NOT EXISTS ${quoted}.row_lock (key text PRIMARY KEY);

CREATE OR REPLACE FUNCTION ${quoted}.lock_rows(keys text[], wait_ms integer) RETURNS boolean
LANGUAGE plpgsql VOLATILE
-- What it sets of these ends with it, and the caller's own is back.
SET lock_timeout = 0
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  deadline constant timestamptz := clock_timestamp() + make_interval(secs => wait_ms / 1000.0);
  wanted text;
BEGIN
  -- Under any other level a transaction sees what was there when it began to wait, and not what the last holder wrote.
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RAISE EXCEPTION 'the isolation level is %', current_setting('transaction_isolation') USING ERRCODE = '${WRONG_ISOLATION}';
  END IF;
  FOREACH wanted IN ARRAY keys LOOP
    LOOP
      -- 0 would be no limit.
      PERFORM set_config('lock_timeout', greatest(1, ceil(extract(epoch FROM deadline - clock_timestamp()) * 1000))::text, true);
      PERFORM FROM ${quoted}.row_lock AS r WHERE r.key = wanted FOR UPDATE;
      EXIT WHEN FOUND;
      -- Nobody else sees a row that was made here before this transaction ends.
      INSERT INTO ${quoted}.row_lock (key) VALUES (wanted) ON CONFLICT DO NOTHING;
      EXIT WHEN FOUND;
    END LOOP;
  END LOOP;
  RETURN true;
END
$$;
`;
}
