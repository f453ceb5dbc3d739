import { DONE_MS } from '../../kit/protocol.js';
import { DONE, fromNow } from '../tables.js';
import { CONTEND, ATTEMPT, ATTEMPT_REPLY, ATTEMPT_VARIABLES, GRANT } from './acquire.js';
import { IS_DONE, IS_LATE, KEEP_ROW, LOCK_ROW, ROW_VARIABLES, TOUCH } from './lease-row.js';
import { readFlag, readOutcome } from '../rows.js';
import { NAME, procedure } from './procedure.js';
import { handOver, QUEUE_VARIABLES, WAKE } from './queue.js';

const RELEASE_VARIABLES = `
  DECLARE answer TINYINT;
  DECLARE is_last BOOLEAN DEFAULT FALSE;
  DECLARE at_byte BIGINT DEFAULT 0;`;

/**
 * Takes a hold of an owner out of a row that is locked, and leaves a done mark of one that is `_unanswered`. `answer`
 * is the answer to the release of this hold, the first one where a mark has it, and `is_last` says whether this run
 * took the last hold out.
 */
const takeOut = (hold: string, owner: string): string => `
  IF l_owner <=> ${owner} THEN
    SET at_byte = locate(concat(';', ${hold}, '='), l_holds);
  END IF;
  IF at_byte = 0 AND _unanswered AND l_done_ends > now_us THEN
    SELECT max(d.answer) INTO answer FROM ${DONE} AS d WHERE d.hold = ${hold} AND d.ends > now_us;
  END IF;
  IF answer IS NULL THEN
    SET answer = at_byte > 0;
    IF _unanswered THEN
      SET l_done_ends = ${fromNow(DONE_MS)};
      INSERT INTO ${DONE} (hold, answer, ends) VALUES (${hold}, at_byte > 0, l_done_ends)
        ON DUPLICATE KEY UPDATE answer = at_byte > 0, ends = l_done_ends;
    END IF;
    IF at_byte > 0 THEN
      SET l_holds = concat(left(l_holds, at_byte), substring(l_holds, locate(';', l_holds, at_byte + 1) + 1));
      SET l_holds = nullif(l_holds, ';'), is_last = l_holds IS NULL;
    END IF;
  ELSE
    ${TOUCH}
  END IF;`;

export const RELEASE = procedure(
  'release',
  { key: NAME, hold: NAME, owner: NAME, unanswered: 'BOOLEAN' },
  `${ROW_VARIABLES}${QUEUE_VARIABLES}${RELEASE_VARIABLES}`,
  `${LOCK_ROW}
  ${takeOut('_hold', '_owner')}
  IF is_last THEN
    ${handOver('NULL')}
  END IF;
  ${KEEP_ROW}`,
  `${WAKE}
  SELECT answer, now_us;`,
  readFlag,
);

export const EXCHANGE = procedure(
  'exchange',
  { ...ATTEMPT, released: NAME, releasedOwner: NAME, unanswered: 'BOOLEAN', mayOvertake: 'BOOLEAN', latest: 'BIGINT' },
  `${ATTEMPT_VARIABLES}${RELEASE_VARIABLES}
  DECLARE may_grant BOOLEAN;`,
  `${LOCK_ROW}
  ${takeOut('_released', '_released_owner')}
  -- A command that arrives late must not grant the lock to a hold that has ended, or that nobody waits for any more. A later command may
  -- have queued its place already.
  SET may_grant = is_last AND _may_overtake AND NOT ${IS_DONE};
  IF may_grant AND NOT ${IS_LATE} THEN
    ${GRANT}
  ELSE
    IF is_last THEN
      ${handOver('NULL')}
    END IF;
    IF may_grant THEN
      ${KEEP_ROW}
      SET outcome = 'late';
    ELSE
      -- Where too many were gone, this attempt hands the lock over to the next ones.
      SET l_turn = nullif(l_turn, '');
      ${CONTEND}
    END IF;
  END IF;`,
  `${WAKE}
  SELECT answer, ${ATTEMPT_REPLY};`,
  (row, key) => ({ released: readFlag(row, key), attempt: readOutcome(row, key) }),
);

export const FORCE_RELEASE = procedure(
  'force_release',
  { key: NAME, fence: 'BIGINT' },
  `${ROW_VARIABLES}${QUEUE_VARIABLES}
  DECLARE answer TINYINT DEFAULT 0;`,
  `${LOCK_ROW}
  IF l_owner IS NOT NULL AND l_fence = _fence THEN
    ${handOver('NULL')}
    SET answer = 1;
    ${KEEP_ROW}
  END IF;`,
  `${WAKE}
  SELECT answer, now_us;`,
  readFlag,
);
