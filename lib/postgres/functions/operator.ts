import type { StoredLock } from '../../core/seam/lock-store.js';
import { readStored } from '../../kit/replies.js';
import { isOne, operation, sqlFunction } from './sql-function.js';

const WAITERS = `CASE WHEN queue_ends > clock_timestamp() THEN coalesce(queue, '{}') ELSE '{}' END`;

/**
 * `inspect` for a key that is shared, in one statement, which sees one moment. The reply is the same, with the smallest
 * count of permits at its end, or 0 for readers.
 */
export const INSPECT_SHARED = sqlFunction(
  'inspect_shared(_key text)',
  'json',
  `
BEGIN
  RETURN (
    SELECT json_build_array(
      fence,
      s.count,
      ceil(extract(epoch FROM s.last - clock_timestamp()) * 1000),
      floor(extract(epoch FROM s.sinces[1]) * 1000),
      s.holders[1],
      ${WAITERS},
      s.processes,
      s.fewest
    )
    FROM SCHEMA.lease, LATERAL (
      SELECT count(*), max(ends) AS last, array_agg(since ORDER BY number) AS sinces, array_agg(holder ORDER BY number) AS holders,
        array_agg(DISTINCT process) AS processes, min(shares) AS fewest
      FROM SCHEMA.shared WHERE key = _key AND owner IS NOT NULL AND ends > clock_timestamp()
    ) AS s
    WHERE key = _key AND owner = '' AND s.count > 0
  );
END
`,
);

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
DECLARE
  reply json := (
    SELECT json_build_array(
      fence,
      cardinality(holds),
      ceil(extract(epoch FROM ends - clock_timestamp()) * 1000),
      floor(extract(epoch FROM since) * 1000),
      holder,
      ${WAITERS},
      ARRAY(SELECT DISTINCT unnest(processes))
    )
    FROM SCHEMA.lease WHERE key = _key AND owner <> '' AND ends > clock_timestamp()
  );
BEGIN
  IF reply IS NULL AND EXISTS (SELECT FROM SCHEMA.lease WHERE key = _key AND owner = '') THEN
    reply := SCHEMA.inspect_shared(_key);
  END IF;
  RETURN reply;
END
`,
  readLock,
);

/** Reads a reply of `inspect`. */
export function readLock(reply: unknown): StoredLock | null {
  const stored = readStored(reply);
  const fewest = stored && (reply as readonly unknown[])[7];
  return stored && fewest !== undefined ? { ...stored, shares: fewest === 0 ? 'read' : Number(fewest) } : stored;
}

/** Frees a lock, and notifies the processes of its holders. Reply: 1, or 0 where it is not held at that fence. */
export const FORCE_RELEASE = operation(
  'force_release',
  { key: 'text', fence: 'bigint' },
  `
DECLARE
  l SCHEMA.lease := SCHEMA.locked(_key);
  held text[] := l.processes;
BEGIN
  IF l.owner = '' THEN
    held := ARRAY(SELECT process FROM SCHEMA.shared WHERE key = _key AND owner IS NOT NULL);
  END IF;
  IF l.owner IS NULL OR held = '{}' OR l.fence <> _fence THEN
    RETURN 0;
  END IF;
  IF l.owner = '' THEN
    DELETE FROM SCHEMA.shared WHERE key = _key AND owner IS NOT NULL;
  END IF;
  PERFORM SCHEMA.keep(SCHEMA.hand_over(l, NULL));
  PERFORM SCHEMA.notify(process, 'forced ' || _fence || ' ' || _key) FROM (SELECT DISTINCT unnest(held) AS process) AS each;
  RETURN 1;
END
`,
  isOne,
);
