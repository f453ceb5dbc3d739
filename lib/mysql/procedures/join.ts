import { MOST_HOLDS } from '../../kit/protocol.js';
import { IS_DONE, IS_IN, IS_LATE, KEEP_ROW, LENGTHEN, LOCK_ROW, ROW_VARIABLES } from './lease-row.js';
import { oneOf } from '../rows.js';
import { NAME, procedure } from './procedure.js';

export const JOIN = procedure(
  'join',
  { key: NAME, owner: NAME, fence: 'BIGINT', hold: NAME, process: NAME, ttlMs: 'BIGINT', latest: 'BIGINT' },
  `${ROW_VARIABLES}
  DECLARE outcome VARCHAR(6) DEFAULT 'joined';`,
  `${LOCK_ROW}
  IF NOT (l_owner <=> _owner) OR l_fence <> _fence OR ${IS_DONE} THEN
    SET outcome = 'ended';
  ELSEIF NOT ${IS_IN} THEN
    IF length(l_holds) - length(replace(l_holds, ';', '')) > ${MOST_HOLDS} THEN
      SET outcome = 'full';
    ELSEIF ${IS_LATE} THEN
      SET outcome = 'late';
    ELSE
      SET l_holds = concat(l_holds, _hold, '=', _process, ';');
    END IF;
  END IF;
  IF outcome = 'joined' THEN
    ${LENGTHEN}
    ${KEEP_ROW}
  END IF;`,
  `SELECT outcome, now_us;`,
  (row, key) => oneOf(row, 'outcome', ['joined', 'ended', 'full', 'late'], key),
);
