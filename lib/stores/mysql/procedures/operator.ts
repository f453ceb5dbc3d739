import { KEEP_ROW, LOCK_ROW, ROW_VARIABLES } from './lease-row.js';
import { readFlag } from '../rows.js';
import { procedure } from './procedure.js';
import { handOver, QUEUE_VARIABLES, WAKE } from './queue.js';

/** Frees the lock if it is held at that fence, and hands it over. Answer: 1, or 0 where it is not held at that fence. */
export const FORCE_RELEASE = procedure(
  'force_release',
  { key: 'VARBINARY(2048)', fence: 'BIGINT' },
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
