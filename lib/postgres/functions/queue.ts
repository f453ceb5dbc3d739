import { CLAIM_MS, MOST_SKIPPED } from '../../kit/protocol.js';
import { interval, operation, sqlFunction } from './sql-function.js';

/** Takes a place off the queue. Reply: the row. */
export const OFF_QUEUE = sqlFunction(
  'off_queue(l SCHEMA.lease, _place text)',
  'SCHEMA.lease',
  `
BEGIN
  l.queue := nullif(array_remove(l.queue, _place), '{}');
  l.polling := nullif(array_remove(l.polling, _place), '{}');
  RETURN l;
END
`,
);

/**
 * Frees a lock that is held, and reserves the room that there is for the first in the queue, one after the other: for
 * one that wants the key alone, or for as many others as fit. They are notified. Processes that are gone are skipped.
 * `_mine`: the place of the process that asks, which is there whether or not it receives messages; or NULL.
 *
 * Reply: the row. Its turn is '' where too many were gone.
 */
export const HAND_OVER = sqlFunction(
  'hand_over(l SCHEMA.lease, _mine text)',
  'SCHEMA.lease',
  `
DECLARE
  place text;
  polls boolean;
  process text;
  shares bigint;
  skipped int := 0;
BEGIN
  IF l.owner = '' THEN
    l := SCHEMA.sharing(l);
  ELSE
    l.owner := NULL;
    l.holds := NULL;
    l.processes := NULL;
  END IF;
  l.turn := NULL;
  WHILE skipped < ${MOST_SKIPPED} LOOP
    place := l.queue[1];
    shares := SCHEMA.shares_of(place);
    IF place IS NULL OR NOT SCHEMA.has_room(l, shares) THEN
      RETURN l;
    END IF;
    -- Off the queue before it is notified: a reservation that nobody claims is not given to the same place again.
    polls := coalesce(place = ANY (l.polling), false);
    l := SCHEMA.off_queue(l, place);
    l.ends := clock_timestamp() + ${interval(CLAIM_MS)};
    process := substring(place from '^(.*):');
    IF polls OR place = _mine OR SCHEMA.is_present(process) THEN
      IF NOT polls THEN
        PERFORM SCHEMA.notify(process, 'turn ' || substring(place from '[^:]*$') || ' ' || l.key);
      END IF;
      IF shares IS NULL THEN
        l.turn := place;
        RETURN l;
      END IF;
      l := SCHEMA.reserve(l, place);
    ELSE
      skipped := skipped + 1;
    END IF;
  END LOOP;
  l.turn := '';
  RETURN l;
END
`,
);

/** Reply: 1. */
export const LEAVE = operation(
  'leave',
  { key: 'text', place: 'text' },
  `
DECLARE
  l SCHEMA.lease := SCHEMA.locked(_key);
BEGIN
  IF _place = ANY (l.queue) THEN
    l := SCHEMA.off_queue(l, _place);
    -- One that waits no longer keeps nobody out of a key that others share.
    IF l.owner = '' THEN
      l := SCHEMA.hand_over(l, NULL);
    END IF;
  ELSIF l.owner = '' THEN
    IF SCHEMA.unreserve(_key, _place) THEN
      l := SCHEMA.hand_over(l, NULL);
    END IF;
  ELSIF l.turn = _place THEN
    l := SCHEMA.hand_over(l, NULL);
  END IF;
  PERFORM SCHEMA.keep(l);
  RETURN 1;
END
`,
  () => undefined,
);
