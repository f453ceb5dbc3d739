import { sqlFunction } from './sql-function.js';

/** How often a row is looked for that others delete, before it counts as hidden. */
const MOST_TRIES = 100;

/**
 * Locks the row of a key, and makes it where there is none. Raises an error where a policy of row-level security hides
 * it: it could be neither locked nor made.
 *
 * Reply: the row, without the lock, the reservation, the queue and those who share the key if they have expired.
 */
export const LOCKED = sqlFunction(
  'locked(_key text)',
  'SCHEMA.lease',
  `
DECLARE
  l SCHEMA.lease;
BEGIN
  FOR tries IN 1..${MOST_TRIES} LOOP
    SELECT * INTO l FROM SCHEMA.lease WHERE key = _key FOR UPDATE;
    EXIT WHEN FOUND;
    IF tries = ${MOST_TRIES} THEN
      RAISE insufficient_privilege USING MESSAGE = 'row-level security hides the row of the key in SCHEMA.lease: '
        || coalesce((SELECT string_agg(polname, ', ') FROM pg_policy WHERE polrelid = 'SCHEMA.lease'::regclass), 'no policy');
    END IF;
    INSERT INTO SCHEMA.lease (key, ends) VALUES (_key, clock_timestamp()) ON CONFLICT DO NOTHING;
  END LOOP;
  IF l.ends <= clock_timestamp() THEN
    l.owner := NULL;
    l.holds := NULL;
    l.processes := NULL;
    l.turn := NULL;
  ELSIF l.owner = '' THEN
    DELETE FROM SCHEMA.shared WHERE key = _key AND ends <= clock_timestamp();
    l := SCHEMA.sharing(l);
  END IF;
  IF l.queue_ends <= clock_timestamp() THEN
    l.queue := NULL;
    l.polling := NULL;
  END IF;
  RETURN l;
END
`,
);

/** Writes the row `l`, which `locked` returned. */
export const KEEP = sqlFunction(
  'keep(l SCHEMA.lease)',
  'void',
  `
BEGIN
  IF l.owner = '' THEN
    l := SCHEMA.sharing(l);
  END IF;
  l.turn := nullif(l.turn, '');
  IF l.owner IS NULL AND l.turn IS NULL THEN
    l.ends := least(l.ends, clock_timestamp());
  END IF;
  UPDATE SCHEMA.lease SET
    owner = l.owner, fence = l.fence, ttl_ms = l.ttl_ms, since = l.since, holder = l.holder, ends = l.ends, holds = l.holds,
    processes = l.processes, turn = l.turn, queue = l.queue, polling = l.polling, queue_ends = l.queue_ends
  WHERE key = l.key;
END
`,
);
