import { fromNow, LEASE, NOW } from '../tables.js';
import { procedure } from './procedure.js';

const field = (name: string): string => `json_unquote(json_extract(_renewals, concat('$[', i, '].${name}')))`;

/** `owns`: whether the hold is in its lock. NULL where there is no row, or another transaction has locked it. */
const READ = `
    SELECT owner = r_owner AND fence = r_fence AND locate(concat(';', r_hold, '='), holds) > 0 AND ends > ${NOW},
        CASE WHEN r_lingering AND length(holds) - length(replace(holds, ';', '')) = 2 THEN 0 ELSE ends END
      INTO owns, r_ends FROM ${LEASE} WHERE name = r_name`;

/**
 * Sets each lease to at least its ttl from now, and to exactly its ttl for a hold that lingers alone. `renewals` is
 * JSON: a list of objects with `name`, `hold`, `owner` and `by` in hexadecimal, `fence`, `ttlMs`, and `lingering` as 1
 * or 0, in the order of the names, so that two renewals do not wait for each other's rows. `waits`: whether it waits
 * for a row that another transaction has locked.
 *
 * Answers for each hold: 1; 0 where it is no longer in its lock; - where its row is locked.
 */
export const RENEW = procedure(
  'renew',
  { renewals: 'LONGTEXT CHARACTER SET utf8mb4', waits: 'BOOLEAN' },
  `
  DECLARE i INT DEFAULT 0;
  DECLARE answers LONGTEXT DEFAULT '';
  DECLARE r_name VARBINARY(2048);
  DECLARE r_owner, r_hold VARBINARY(64);
  DECLARE r_by MEDIUMBLOB;
  DECLARE r_fence, r_ttl_ms, r_ends, is_there, now_us BIGINT;
  DECLARE r_lingering, owns BOOLEAN;`,
  `WHILE i < json_length(_renewals) DO
    SET r_name = unhex(${field('name')}), r_owner = unhex(${field('owner')}), r_hold = unhex(${field('hold')}), r_by = unhex(${field('by')}),
      r_fence = ${field('fence')}, r_ttl_ms = ${field('ttlMs')}, r_lingering = ${field('lingering')}, owns = NULL;
    IF _waits THEN
      ${READ} FOR UPDATE;
    ELSE
      ${READ} FOR UPDATE SKIP LOCKED;
    END IF;
    SET now_us = ${NOW};
    IF owns THEN
      -- The last column changes in any case: a commit that changes nothing waits for no replica.
      UPDATE ${LEASE} SET ends = greatest(r_ends, ${fromNow('r_ttl_ms')}), ttl_ms = greatest(ttl_ms, r_ttl_ms),
        holder = CASE WHEN r_by = '' THEN holder ELSE r_by END, done_ends = done_ends + 1 WHERE name = r_name;
    END IF;
    IF owns IS NULL THEN
      -- By itself, since SET would wait for the row that its subquery reads.
      SELECT count(*) INTO is_there FROM ${LEASE} WHERE name = r_name AND owner = r_owner;
    END IF;
    SET answers = concat(answers, CASE WHEN owns THEN '1' WHEN owns IS NULL AND is_there > 0 THEN '-' ELSE '0' END), i = i + 1;
  END WHILE;`,
  `SELECT answers, now_us;`,
  (row) => row,
);
