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
 * Reserves a free lock for the first in the queue, and notifies it. Processes that are gone are skipped. `_mine`: the
 * place of the process that asks, which is there whether or not it receives messages; or NULL.
 *
 * Reply: the row. Its turn is NULL where nobody waits, and '' where too many were gone.
 */
export const HAND_OVER = sqlFunction(
  'hand_over(l SCHEMA.lease, _mine text)',
  'SCHEMA.lease',
  `
DECLARE
  place text;
  polls boolean;
  process text;
BEGIN
  l.owner := NULL;
  l.holds := NULL;
  l.processes := NULL;
  FOR skipped IN 1..${MOST_SKIPPED} LOOP
    place := l.queue[1];
    l.turn := place;
    IF place IS NULL THEN
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
      RETURN l;
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
  ELSIF l.turn = _place THEN
    l := SCHEMA.hand_over(l, NULL);
  END IF;
  PERFORM SCHEMA.keep(l);
  RETURN 1;
END
`,
  () => undefined,
);
