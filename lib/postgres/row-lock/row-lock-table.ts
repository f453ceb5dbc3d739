import { checkSchema, qualified } from '../schema-name.js';

/** The SQLSTATE with which `lock_rows` refuses an isolation level. PostgreSQL leaves its class to users. */
export const WRONG_ISOLATION = 'LK001';

/**
 * The SQL that `withRowLock` needs. `SCHEMA` stands for the schema.
 *
 * The table `row_lock` has a row for each key, with no data. Rows that nobody has locked may be deleted at any time:
 * the next caller makes them again.
 *
 * `lock_rows(keys, wait_ms)` locks the rows in the order given until the transaction ends, and makes missing rows. A
 * transaction that finds a row which another transaction is making waits for the end of that transaction, and makes the
 * row itself if it was rolled back. A row that was deleted while a transaction waited for it is made again.
 */
export const ROW_LOCK = `CREATE TABLE IF NOT EXISTS SCHEMA.row_lock (key text COLLATE "C" PRIMARY KEY);

CREATE OR REPLACE FUNCTION SCHEMA.lock_rows(keys text[], wait_ms integer) RETURNS boolean
LANGUAGE plpgsql VOLATILE
-- What it sets of these ends with it, and the caller's own values are back.
SET lock_timeout = 0
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  deadline constant timestamptz := clock_timestamp() + make_interval(secs => wait_ms / 1000.0);
  wanted text;
BEGIN
  -- At any other level a transaction sees what was there when it began to wait, and not what the last holder wrote.
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RAISE EXCEPTION 'the isolation level is %', current_setting('transaction_isolation') USING ERRCODE = '${WRONG_ISOLATION}';
  END IF;
  FOREACH wanted IN ARRAY keys LOOP
    LOOP
      -- 0 would be no limit.
      PERFORM set_config('lock_timeout', greatest(1, ceil(extract(epoch FROM deadline - clock_timestamp()) * 1000))::text, true);
      PERFORM FROM SCHEMA.row_lock AS r WHERE r.key = wanted FOR UPDATE;
      EXIT WHEN FOUND;
      -- No other transaction sees a row that was made here before this one ends.
      INSERT INTO SCHEMA.row_lock (key) VALUES (wanted) ON CONFLICT DO NOTHING;
      EXIT WHEN FOUND;
    END LOOP;
  END LOOP;
  RETURN true;
END
$$;`;

/**
 * The SQL of the table and the function that `withRowLock` needs, for those who use nothing else and migrate by hand: a
 * part of the SQL that `schemaSql()` returns. It may be run again. Throws `LockConfigurationError` where the name of
 * the schema would have to be escaped.
 */
export function rowLockSql(schema?: string): string {
  const name = checkSchema(schema, 'rowLockSql');
  return `CREATE SCHEMA IF NOT EXISTS "${name}";\n\n${qualified(ROW_LOCK, name)}\n`;
}
