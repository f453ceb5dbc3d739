import { MOST_FENCES } from '../../core/seam/lock-store.js';
import { CLAIM_MS, QUEUE_MS } from '../../kit/protocol.js';
import { readAttempt, readBusy } from '../../kit/replies.js';
import type { KeyKind } from '../../core/seam/shares.js';
import type { Attempt } from '../../sql/lock-operations.js';
import { LATE } from '../../sql/operation.js';
import { batchable, fromNow, interval, IS_LATE, LATE_REPLY, operation, sqlFunction } from './sql-function.js';
import { CLOCK } from './grant.js';

/** The parameters of an attempt. */
export const ATTEMPT = {
  key: 'text',
  owner: 'text',
  hold: 'text',
  process: 'text',
  ttlMs: 'bigint',
  by: 'text',
  place: 'text',
  polls: 'boolean',
} as const;

/**
 * Whether one that shares the key may go in: room is reserved for it, or is there, and nobody is before it in the
 * queue. Those who are have what room there is.
 */
export const IS_TURN_OF = sqlFunction(
  'is_turn_of(l SCHEMA.lease, _place text, _shares bigint)',
  'boolean',
  `
BEGIN
  IF l.owner <> '' OR l.turn IS NOT NULL THEN
    RETURN false;
  END IF;
  RETURN l.owner = '' AND EXISTS (SELECT FROM SCHEMA.shared WHERE key = l.key AND name = _place AND owner IS NULL)
    OR coalesce(l.queue[1] = _place, l.queue IS NULL) AND SCHEMA.has_room(l, _shares);
END
`,
);

/**
 * `acquire` and `acquire_shared` for a row that is locked here, and for every case. The parameters and the reply are
 * the same.
 */
export const CONTEND = sqlFunction(
  `contend(l SCHEMA.lease, _owner text, _hold text, _process text, _ttl_ms bigint, _by text, _place text, _polls boolean,
  _latest bigint, _shares bigint DEFAULT NULL)`,
  'json',
  `
DECLARE
  most_ms bigint;
  remaining_ms bigint;
  is_new int := 0;
  other_kind text;
  permits bigint;
BEGIN
  IF SCHEMA.is_done(_hold) THEN
    PERFORM SCHEMA.keep(l);
    RETURN json_build_array(0, '', 0, -1, 0, '');
  END IF;
  IF l.owner = '' OR _shares IS NOT NULL THEN
    IF l.owner = '' AND _shares IS NOT NULL AND SCHEMA.lengthen(l.key, _hold, _owner, _ttl_ms, _by, false) THEN
      PERFORM SCHEMA.keep(l);
      RETURN to_json(l.fence);
    END IF;
    other_kind := SCHEMA.other_kind(l, _shares);
    IF other_kind IS NOT NULL THEN
      PERFORM SCHEMA.keep(l);
      RETURN json_build_array(
        greatest(0, ceil(extract(epoch FROM l.ends - clock_timestamp()) * 1000)),
        l.holder,
        greatest(0, floor(extract(epoch FROM clock_timestamp() - l.since) * 1000)),
        -1,
        0,
        '',
        other_kind
      );
    END IF;
  END IF;
  IF coalesce(l.owner, '') = '' AND l.turn IS NULL AND l.queue[1] IS DISTINCT FROM _place THEN
    l := SCHEMA.hand_over(l, _place);
  END IF;
  IF (CASE
    WHEN _shares IS NULL THEN l.owner IS NULL AND coalesce(l.turn = _place, l.turn IS NULL)
    ELSE SCHEMA.is_turn_of(l, _place, _shares)
  END) THEN
    IF ${IS_LATE} THEN
      PERFORM SCHEMA.keep(l);
      RETURN ${LATE_REPLY};
    END IF;
    IF _shares IS NOT NULL THEN
      RETURN SCHEMA.grant_shared(l, _owner, _hold, _process, _ttl_ms, _by, _place, _shares);
    END IF;
    RETURN SCHEMA.grant_lock(l, _owner, _hold, _process, _ttl_ms, _by, _place);
  END IF;
  IF l.owner = _owner AND _hold = ANY (l.holds) THEN
    l.ends := greatest(l.ends, ${fromNow('_ttl_ms')});
    l.ttl_ms := greatest(l.ttl_ms, _ttl_ms);
    PERFORM SCHEMA.keep(l);
    RETURN to_json(l.fence);
  END IF;
  -- More time left than was ever asked for: the server's clock was set back.
  IF l.owner = '' THEN
    l := SCHEMA.cut_shared(l);
  END IF;
  remaining_ms := ceil(extract(epoch FROM l.ends - clock_timestamp()) * 1000);
  most_ms := CASE WHEN l.owner = '' THEN remaining_ms WHEN l.owner IS NULL THEN ${CLAIM_MS} ELSE l.ttl_ms END;
  IF remaining_ms > most_ms THEN
    remaining_ms := most_ms;
    l.ends := ${fromNow('remaining_ms')};
  END IF;
  IF l.owner = '' AND _shares > 0 THEN
    -- One that needs a permit waits for the first of them.
    permits := (SELECT shares FROM SCHEMA.shared WHERE key = l.key AND owner IS NOT NULL ORDER BY number LIMIT 1);
    remaining_ms := (SELECT ceil(extract(epoch FROM min(ends) - clock_timestamp()) * 1000) FROM SCHEMA.shared WHERE key = l.key);
  END IF;
  IF _place IS NOT NULL THEN
    IF array_position(l.queue, _place) IS NULL THEN
      l.queue := l.queue || _place;
      is_new := 1;
    END IF;
    l.polling := array_remove(l.polling, _place) || CASE WHEN _polls THEN ARRAY[_place] END;
    l.queue_ends := clock_timestamp() + ${interval(QUEUE_MS)};
  END IF;
  PERFORM SCHEMA.keep(l);
  RETURN json_build_array(
    greatest(0, remaining_ms),
    CASE WHEN l.owner IS NULL THEN '' ELSE coalesce(l.holder, '') END,
    CASE WHEN l.owner IS NULL THEN 0 ELSE greatest(0, floor(extract(epoch FROM clock_timestamp() - l.since) * 1000)) END,
    coalesce(array_position(l.queue, _place), 0) - 1,
    is_new,
    coalesce(l.turn, ''),
    NULL,
    permits
  );
END
`,
);

/** Reads the reply to an attempt, which may be late, or name the other kind of key. */
export function readAnyAttempt(reply: unknown): Attempt {
  if (!Array.isArray(reply)) {
    return reply === LATE ? LATE : readAttempt(reply);
  }
  const otherKind = reply[6] as KeyKind | null | undefined;
  return otherKind ? { ...readBusy(reply), otherKind } : readBusy(reply);
}

/**
 * Reply: the fence; or `[remaining ms, by, held ms, rank in the queue or -1, 1 if it is new there, place the lock is
 * reserved for or '', kind of the key or null, count of permits or null]` where another owner has it, it is reserved
 * for another place, or this hold has ended; or `late` where it would have been granted later than `latest`. The kind
 * is that of a key of the other kind; the count is what the named holder of a permit asked for.
 */
export const ACQUIRE = batchable(
  operation(
    'acquire',
    { ...ATTEMPT, latest: 'bigint' },
    `
DECLARE
  granted bigint;
  is_done boolean;
BEGIN
  -- A lock that is free, and that nobody waits for, in one statement; or in two, where its key is new.
  UPDATE SCHEMA.lease SET
    owner = _owner, fence = greatest(fence + ${MOST_FENCES}, ${CLOCK}), ttl_ms = _ttl_ms, since = clock_timestamp(), holder = _by,
    ends = ${fromNow('_ttl_ms')}, holds = ARRAY[_hold], processes = ARRAY[_process], turn = NULL
  WHERE key = _key AND ends <= clock_timestamp() AND queue IS NULL
  RETURNING fence INTO granted;
  IF NOT FOUND THEN
    INSERT INTO SCHEMA.lease (key, owner, fence, ttl_ms, since, holder, ends, holds, processes)
    VALUES (_key, _owner, ${CLOCK}, _ttl_ms, clock_timestamp(), _by, ${fromNow('_ttl_ms')}, ARRAY[_hold], ARRAY[_process])
    ON CONFLICT DO NOTHING
    RETURNING fence INTO granted;
  END IF;
  IF NOT FOUND THEN
    RETURN SCHEMA.contend(SCHEMA.locked(_key), _owner, _hold, _process, _ttl_ms, _by, _place, _polls, _latest);
  END IF;
  -- Only now: this command may have waited long for the row, and the release of this hold may have been carried out
  -- meanwhile.
  is_done := EXISTS (SELECT FROM SCHEMA.done WHERE hold = _hold AND ends > clock_timestamp());
  IF is_done OR ${IS_LATE} THEN
    UPDATE SCHEMA.lease SET owner = NULL, holds = NULL, processes = NULL, ends = clock_timestamp() WHERE key = _key;
    RETURN CASE WHEN is_done THEN json_build_array(0, '', 0, -1, 0, '') ELSE ${LATE_REPLY} END;
  END IF;
  RETURN to_json(SCHEMA.countable(granted));
END
`,
    readAnyAttempt,
  ),
);

/** `acquire` for a hold that shares the key: `shares` is its count of permits, or 0. The reply is the same. */
export const ACQUIRE_SHARED = batchable(
  operation(
    'acquire_shared',
    { ...ATTEMPT, shares: 'bigint', latest: 'bigint' },
    `
BEGIN
  RETURN SCHEMA.contend(SCHEMA.locked(_key), _owner, _hold, _process, _ttl_ms, _by, _place, _polls, _latest, _shares);
END
`,
    readAnyAttempt,
  ),
);
