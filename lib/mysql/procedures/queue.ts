import { CLAIM_MS, MOST_SKIPPED } from '../../kit/protocol.js';
import { fromNow, NAMES } from '../tables.js';
import { KEEP_ROW, LOCK_ROW, ROW_VARIABLES } from './lease-row.js';
import { NAME, procedure } from './procedure.js';

/** The variables of a hand-over: the connection that it wakes, and the first of the queue. */
export const QUEUE_VARIABLES = `
  DECLARE sleeper, skipped BIGINT;
  DECLARE entry, first_place VARBINARY(513);`;

/** The named lock that a process holds while it can be woken: of `<pid>:<8 hex digits>`, since such a name is short. */
export function presenceOf(process: string): string {
  return `concat('${NAMES}', substring_index(substring_index(${process}, ':', 3), ':', -2))`;
}

/** Whether the process can be seen from here: it may hold its named lock on another server, as behind some proxies. */
export const IS_HERE = `is_used_lock(${presenceOf('_process')}) IS NOT NULL`;

/** Whether the place is in the queue; it may be NULL, here and below. */
export const IS_QUEUED = `coalesce(locate(concat(';', _place, ';'), l_queue) + locate(concat(';', _place, '~;'), l_queue) > 0, FALSE)`;

/** Takes the place off the queue. */
export const TAKE_OFF_QUEUE = `
  IF ${IS_QUEUED} THEN
    SET l_queue = replace(replace(l_queue, concat(';', _place, ';'), ';'), concat(';', _place, '~;'), ';');
    SET l_queue = nullif(l_queue, ';');
  END IF;`;

/** Whether the first of the queue is another place. */
export const IS_FIRST_ANOTHER = `NOT (trim(TRAILING '~' FROM substring_index(substring(l_queue, 2), ';', 1)) <=> _place)`;

/**
 * Reserves a free lock for the first in the queue, and remembers the connection of that process, if it sleeps.
 * Processes that are gone are skipped. `mine`: the place of the process that asks, which is there whether or not it can
 * be woken; or NULL.
 *
 * Afterwards the turn is NULL where nobody waits, and '' where too many processes were gone.
 */
export const handOver = (mine: string): string => `
  SET l_owner = NULL, l_holds = NULL, l_turn = NULL, skipped = 0;
  WHILE l_queue IS NOT NULL AND l_turn IS NULL DO
    SET entry = substring_index(substring(l_queue, 2), ';', 1);
    SET l_queue = nullif(substring(l_queue, length(entry) + 2), ';');
    SET first_place = trim(TRAILING '~' FROM entry);
    -- Off the queue before it is woken: a reservation that nobody claims is not given to the same place again.
    -- Also one that polled when it queued may sleep now.
    SET sleeper = CASE WHEN NOT first_place <=> ${mine} THEN is_used_lock(${presenceOf('entry')}) END;
    IF entry <> first_place OR first_place <=> ${mine} OR sleeper IS NOT NULL THEN
      SET l_turn = first_place, l_ends = ${fromNow(CLAIM_MS)};
    ELSE
      SET skipped = skipped + 1;
      IF skipped = ${MOST_SKIPPED} THEN
        SET l_turn = '';
      END IF;
    END IF;
  END WHILE;`;

/**
 * Ends the sleep of the process whose turn it is, once the transaction is committed, if its connection is there still.
 * No error of that is one of the operation, which is done: on MySQL, unlike on MariaDB, a named lock without a name is
 * one.
 */
export const WAKE = `
  IF sleeper IS NOT NULL AND l_turn IS NOT NULL THEN
    BEGIN
      DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END;
      IF is_used_lock(${presenceOf('l_turn')}) <=> sleeper THEN
        KILL QUERY sleeper;
      END IF;
    END;
  END IF;`;

export const LEAVE = procedure(
  'leave',
  { key: NAME, place: 'MEDIUMBLOB' },
  `${ROW_VARIABLES}${QUEUE_VARIABLES}`,
  `${LOCK_ROW}
  IF ${IS_QUEUED} THEN
    ${TAKE_OFF_QUEUE}
  ELSEIF l_turn <=> _place THEN
    ${handOver('NULL')}
  END IF;
  ${KEEP_ROW}`,
  `${WAKE}
  SELECT 1 AS answer, now_us;`,
  () => undefined,
);
