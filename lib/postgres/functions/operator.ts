import { readStored } from '../../kit/replies.js';
import { isOne, operation } from './sql-function.js';

/**
 * Reads the stored state of a lock.
 *
 * Reply: `[fence, holds, remaining ms, since in ms, by, [first place, …], [process, …]]`, or NULL where nobody holds
 * it.
 */
export const INSPECT = operation(
  'inspect',
  { key: 'text' },
  `
BEGIN
  RETURN (
    SELECT json_build_array(
      fence,
      cardinality(holds),
      ceil(extract(epoch FROM ends - clock_timestamp()) * 1000),
      floor(extract(epoch FROM since) * 1000),
      holder,
      CASE WHEN queue_ends > clock_timestamp() THEN coalesce(queue, '{}') ELSE '{}' END,
      ARRAY(SELECT DISTINCT unnest(processes))
    )
    FROM SCHEMA.lease WHERE key = _key AND owner IS NOT NULL AND ends > clock_timestamp()
  );
END
`,
  readStored,
);

/** Frees a lock, and notifies the processes of its holders. Reply: 1, or 0 where it is not held at that fence. */
export const FORCE_RELEASE = operation(
  'force_release',
  { key: 'text', fence: 'bigint' },
  `
DECLARE
  l SCHEMA.lease := SCHEMA.locked(_key);
  held text[] := l.processes;
BEGIN
  IF l.owner IS NULL OR l.fence <> _fence THEN
    RETURN 0;
  END IF;
  PERFORM SCHEMA.keep(SCHEMA.hand_over(l, NULL));
  PERFORM SCHEMA.notify(process, 'forced ' || _fence || ' ' || _key) FROM (SELECT DISTINCT unnest(held) AS process) AS each;
  RETURN 1;
END
`,
  isOne,
);
