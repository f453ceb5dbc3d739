import { operation } from './sql-function.js';

/** Rows that one run of `purge` looks at; and done marks, and rows of shared keys, that one run of `tidy` deletes. */
export const BATCH = 1_000;

/**
 * Deletes done marks that have expired, and rows of shared keys that nobody has visited since they did. Reply: how many
 * of the marks or of the rows, whichever are more.
 */
export const TIDY = operation(
  'tidy',
  {},
  `
DECLARE
  removed bigint;
  left_behind bigint := 0;
BEGIN
  DELETE FROM SCHEMA.done WHERE hold IN (
    SELECT hold FROM SCHEMA.done WHERE ends <= clock_timestamp() ORDER BY ends LIMIT ${BATCH} FOR UPDATE SKIP LOCKED
  );
  GET DIAGNOSTICS removed = ROW_COUNT;
  -- Those who never share a key need no right on its table.
  IF has_table_privilege('SCHEMA.shared', 'DELETE') THEN
    DELETE FROM SCHEMA.shared WHERE (key, name) IN (
      SELECT key, name FROM SCHEMA.shared WHERE ends <= clock_timestamp() LIMIT ${BATCH} FOR UPDATE SKIP LOCKED
    );
    GET DIAGNOSTICS left_behind = ROW_COUNT;
  END IF;
  RETURN to_json(greatest(removed, left_behind));
END
`,
  Number,
);

/**
 * Deletes among the keys that begin with `prefix`. Reply:
 * `[rows deleted, last key that was looked at, or NULL where there are no more]`.
 */
export const PURGE = operation(
  'purge',
  { prefix: 'text', after: 'text', olderMs: 'bigint' },
  `
DECLARE
  -- The column's collation orders by bytes, which is by code points in UTF8: all keys with the prefix come before this.
  past_prefix text := left(_prefix, -1) || chr(ascii(right(_prefix, 1)) + 1);
  keys text[] := ARRAY(
    SELECT key FROM SCHEMA.lease WHERE key > _after AND key >= _prefix AND key < past_prefix ORDER BY key LIMIT ${BATCH}
  );
  free_since timestamptz := clock_timestamp() - _older_ms * interval '1 millisecond';
  removed bigint;
BEGIN
  DELETE FROM SCHEMA.lease WHERE key = ANY (ARRAY(
    SELECT key FROM SCHEMA.lease
    WHERE key = ANY (keys) AND ends <= free_since AND (queue IS NULL OR queue_ends <= free_since)
    FOR UPDATE SKIP LOCKED
  ));
  GET DIAGNOSTICS removed = ROW_COUNT;
  RETURN json_build_array(removed, keys[cardinality(keys)]);
END
`,
  (reply) => {
    const [removed, last] = reply as readonly [number, string | null];
    return { removed, last };
  },
);

/** Reply: the number that is recorded, or NULL. */
export const NUMBERED = operation(
  'numbered',
  { key: 'text', number: 'text' },
  `
BEGIN
  IF _number <> '1 of 1' AND NOT EXISTS (SELECT FROM SCHEMA.lease WHERE key = _key) THEN
    INSERT INTO SCHEMA.lease (key, holder, ends) VALUES (_key, _number, 'epoch') ON CONFLICT DO NOTHING;
  END IF;
  RETURN (SELECT to_json(holder) FROM SCHEMA.lease WHERE key = _key);
END
`,
  (reply) => (reply as string | null) ?? undefined,
);
