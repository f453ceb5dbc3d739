import { MOST_FENCES } from '../../core/seam/lock-store.js';
import { CLAIM_MS, MOST_FENCE } from '../../kit/protocol.js';
import { IS_DONE, IS_IN, IS_LATE, KEEP_ROW, LENGTHEN, LOCK_ROW, ROW_VARIABLES } from './lease-row.js';
import { readOutcome } from '../rows.js';
import { NAME, procedure } from './procedure.js';
import { handOver, IS_FIRST_ANOTHER, IS_HERE, IS_QUEUED, QUEUE_VARIABLES, TAKE_OFF_QUEUE, WAKE } from './queue.js';
import { fromNow, QUEUE_MS } from '../tables.js';

/** The parameters of an attempt. */
export const ATTEMPT = {
  key: NAME,
  owner: NAME,
  hold: NAME,
  process: NAME,
  ttlMs: 'BIGINT',
  holder: 'MEDIUMBLOB',
  place: 'MEDIUMBLOB',
  polls: 'BOOLEAN',
} as const;

/** The variables of the answer to an attempt. `outcome` is `fence`, `late`, or `busy`. */
export const ATTEMPT_VARIABLES = `${ROW_VARIABLES}${QUEUE_VARIABLES}
  DECLARE outcome VARCHAR(5) DEFAULT 'busy';
  DECLARE remaining_us, most_us, held_us, place_rank BIGINT DEFAULT 0;
  DECLARE is_new BOOLEAN DEFAULT FALSE;
  DECLARE fence_text VARCHAR(64);
  DECLARE shown_by MEDIUMBLOB DEFAULT '';
  DECLARE shown_turn VARBINARY(512) DEFAULT '';`;

/** The row of an answer to an attempt. */
export const ATTEMPT_REPLY = `
    outcome, l_fence AS fence, ceil(remaining_us / 1000) AS remaining_ms, shown_by, floor(held_us / 1000) AS held_ms,
    place_rank - 1 AS place_rank, is_new, shown_turn, now_us`;

/** Grants a lock whose row is locked. */
export const GRANT = `
    ${TAKE_OFF_QUEUE}
    SET l_owner = _owner, l_fence = greatest(l_fence + ${MOST_FENCES}, now_us), l_ttl_ms = _ttl_ms, l_since = now_us, l_holder = _holder,
      l_ends = ${fromNow('_ttl_ms')}, l_holds = concat(';', _hold, '=', _process, ';'), l_turn = NULL;
    IF l_fence > ${MOST_FENCE - MOST_FENCES} THEN
      SET fence_text = concat('FENCE ', l_fence - ${MOST_FENCES});
      SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = fence_text;
    END IF;
    ${KEEP_ROW}
    SET outcome = 'fence';`;

/** `acquire` for a row that is locked here. */
export const CONTEND = `
  IF ${IS_DONE} THEN
    ${KEEP_ROW}
  ELSE
    IF l_owner IS NULL AND l_turn IS NULL AND ${IS_FIRST_ANOTHER} THEN
      ${handOver('_place')}
    END IF;
    IF l_owner IS NULL AND (l_turn IS NULL OR l_turn <=> _place) THEN
      IF ${IS_LATE} THEN
        ${KEEP_ROW}
        SET outcome = 'late';
      ELSE
        ${GRANT}
      END IF;
    ELSEIF ${IS_IN} THEN
      ${LENGTHEN}
      ${KEEP_ROW}
      SET outcome = 'fence';
    ELSE
      SET most_us = CASE WHEN l_owner IS NULL THEN ${CLAIM_MS} ELSE l_ttl_ms END * 1000;
      -- Where too many were gone, it is free.
      SET remaining_us = CASE WHEN l_turn = '' THEN most_us ELSE l_ends - now_us END;
      -- More time left than was ever asked for: the server's clock was set back.
      IF remaining_us > most_us THEN
        SET remaining_us = most_us, l_ends = now_us + most_us;
      END IF;
      IF _place IS NOT NULL THEN
        SET entry = concat(_place, CASE WHEN NOT _polls AND ${IS_HERE} THEN '' ELSE '~' END),
          is_new = NOT ${IS_QUEUED};
        SET l_queue = CASE
          WHEN is_new THEN concat(coalesce(l_queue, ';'), entry, ';')
          ELSE replace(replace(l_queue, concat(';', _place, '~;'), concat(';', _place, ';')), concat(';', _place, ';'), concat(';', entry, ';'))
        END;
        SET l_queue_ends = ${fromNow(QUEUE_MS)}, place_rank = locate(concat(';', entry, ';'), l_queue);
        SET place_rank = place_rank - length(replace(substring(l_queue, 1, place_rank), ';', '')) ;
      END IF;
      SET shown_turn = coalesce(l_turn, ''), remaining_us = greatest(0, remaining_us);
      IF l_owner IS NOT NULL THEN
        SET shown_by = l_holder, held_us = greatest(0, now_us - l_since);
      END IF;
      ${KEEP_ROW}
    END IF;
  END IF;`;

export const ACQUIRE = procedure(
  'acquire',
  { ...ATTEMPT, latest: 'BIGINT' },
  ATTEMPT_VARIABLES,
  `${LOCK_ROW}${CONTEND}`,
  `${WAKE}
  SELECT ${ATTEMPT_REPLY};`,
  readOutcome,
);
