import { DONE, LEASE, NOW } from '../tables.js';
import { numberOf, textOf } from '../rows.js';
import { NAME, procedure } from './procedure.js';

/** Rows that one run of `purge` looks at, and done marks that one run of `tidy` deletes. */
export const BATCH = 1_000;

/**
 * Deletes done marks that have expired after the time `after`. Earlier marks were deleted, and the server might go
 * through their remains again and again. Where its clock was set back since, marks expire before `after` again, and it
 * begins anew.
 *
 * Answers: how many marks were deleted, and until which time.
 */
export const TIDY = procedure(
  'tidy',
  { after: 'BIGINT' },
  `
  DECLARE now_us, last_us, removed BIGINT;`,
  `SET now_us = ${NOW};
  SET _after = CASE WHEN _after > now_us THEN 0 ELSE _after END;
  SELECT max(ends) INTO last_us FROM (
    SELECT ends FROM ${DONE} WHERE ends >= _after AND ends <= now_us ORDER BY ends LIMIT ${BATCH}
  ) AS expired;
  DELETE FROM ${DONE} WHERE ends >= _after AND ends <= last_us;
  SET removed = row_count();`,
  `SELECT removed, coalesce(last_us, _after) AS until_us, now_us;`,
  (row) => ({ removed: numberOf(row, 'removed', ''), until: numberOf(row, 'until_us', '') }),
);

/**
 * Deletes among the names before `before`. Rows that another transaction has locked are left, and rows with a done mark
 * that counts.
 */
export const PURGE = procedure(
  'purge',
  { after: NAME, before: NAME, olderMs: 'BIGINT' },
  `
  DECLARE now_us, free_since BIGINT;
  DECLARE removed, seen BIGINT DEFAULT 0;
  DECLARE l_name, last_name VARBINARY(2048);
  DECLARE is_free, is_over BOOLEAN DEFAULT FALSE;
  DECLARE names CURSOR FOR SELECT name FROM ${LEASE} WHERE name > _after AND name < _before ORDER BY name LIMIT ${BATCH};
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET is_over = TRUE;`,
  `SET now_us = ${NOW};
  SET free_since = now_us - _older_ms * 1000;
  OPEN names;
  FETCH names INTO l_name;
  WHILE NOT is_over DO
    SET last_name = l_name, seen = seen + 1, is_free = FALSE;
    SELECT TRUE INTO is_free FROM ${LEASE} WHERE name = l_name AND ends <= free_since AND (queue IS NULL OR queue_ends <= free_since)
      AND done_ends <= now_us FOR UPDATE SKIP LOCKED;
    IF is_free THEN
      DELETE FROM ${LEASE} WHERE name = l_name;
      SET removed = removed + 1;
    END IF;
    SET is_over = FALSE;
    FETCH names INTO l_name;
  END WHILE;
  CLOSE names;`,
  `SELECT removed, last_name, now_us;`,
  (row) => ({ removed: numberOf(row, 'removed', ''), last: row['last_name'] as Buffer | null }),
);

export const NUMBERED = procedure(
  'numbered',
  { key: NAME, number: 'MEDIUMBLOB' },
  `
  DECLARE now_us BIGINT;
  DECLARE known MEDIUMBLOB;`,
  `SET now_us = ${NOW};
  IF _number <> '1 of 1' THEN
    INSERT INTO ${LEASE} (name, holder) VALUES (_key, _number) ON DUPLICATE KEY UPDATE fence = fence;
  END IF;
  SELECT max(holder) INTO known FROM ${LEASE} WHERE name = _key;`,
  `SELECT known, now_us;`,
  ({ known }) => (known === null ? undefined : textOf(known)),
);
