import { MOST_FENCES } from '../../core/seam/lock-store.js';
import { MOST_FENCE } from '../../kit/protocol.js';
import { fromNow, sqlFunction } from './sql-function.js';

/**
 * The server's clock in µs. A fence is never below it, and above all fences that the grant before could have reserved:
 * each key has a counter of its own, and grants cannot be so frequent that these reservations carry it past the clock.
 */
export const CLOCK = '(extract(epoch FROM clock_timestamp()) * 1000000)::bigint';

/** Reply: `_fence`. Raises an error, which undoes the operation, where JavaScript could not count that far. */
export const COUNTABLE = sqlFunction(
  'countable(_fence bigint)',
  'bigint',
  `
BEGIN
  IF _fence > ${MOST_FENCE - MOST_FENCES} THEN
    RAISE EXCEPTION 'FENCE %', _fence;
  END IF;
  RETURN _fence;
END
`,
);

/**
 * Grants a lock whose row is locked, and writes the row. `_place`: where the owner queued, or NULL.
 *
 * Reply: the fence.
 */
export const GRANT = sqlFunction(
  'grant_lock(l SCHEMA.lease, _owner text, _hold text, _process text, _ttl_ms bigint, _by text, _place text)',
  'json',
  `
BEGIN
  l := SCHEMA.off_queue(l, _place);
  l.owner := _owner;
  l.fence := SCHEMA.countable(greatest(l.fence + ${MOST_FENCES}, ${CLOCK}));
  l.ttl_ms := _ttl_ms;
  l.since := clock_timestamp();
  l.holder := _by;
  l.ends := ${fromNow('_ttl_ms')};
  l.holds := ARRAY[_hold];
  l.processes := ARRAY[_process];
  l.turn := NULL;
  PERFORM SCHEMA.keep(l);
  RETURN to_json(l.fence);
END
`,
);

/**
 * Lets a hold into a key that it shares, and uses up the reservation of its place. The first one that is in brings the
 * fence of all.
 *
 * Reply: the fence.
 */
export const GRANT_SHARED = sqlFunction(
  `grant_shared(l SCHEMA.lease, _owner text, _hold text, _process text, _ttl_ms bigint, _by text, _place text, _shares bigint)`,
  'json',
  `
DECLARE
  is_first boolean := true;
BEGIN
  l := SCHEMA.off_queue(l, _place);
  IF l.owner = '' THEN
    PERFORM SCHEMA.unreserve(l.key, _place);
    is_first := NOT EXISTS (SELECT FROM SCHEMA.shared WHERE key = l.key AND owner IS NOT NULL);
  END IF;
  IF is_first THEN
    l.fence := SCHEMA.countable(greatest(l.fence + ${MOST_FENCES}, ${CLOCK}));
  END IF;
  PERFORM SCHEMA.keep(SCHEMA.enter(l, _hold, _shares, _ttl_ms, _owner, _process, _by));
  RETURN to_json(l.fence);
END
`,
);
