import { CLAIM_MS, MOST_HOLDS } from '../../kit/protocol.js';
import { fromNow, sqlFunction } from './sql-function.js';

/**
 * How the process in a place wants the key.
 *
 * Reply: NULL: alone; 0: to read; a number: as one of so many permits.
 */
export const SHARES_OF = sqlFunction(
  'shares_of(_place text)',
  'bigint',
  `
BEGIN
  RETURN CASE WHEN _place LIKE '%R' THEN 0 ELSE substring(_place from 'P([0-9]+)$')::bigint END;
END
`,
);

/**
 * Sums up the rows of a shared key in `l`. Functions reach for those rows only where the owner is '': a grant of write
 * mode leaves old ones behind, and needs no right on their table.
 *
 * Reply: the row; without an owner where nobody is in, and no room is reserved.
 */
export const SHARING = sqlFunction(
  'sharing(l SCHEMA.lease)',
  'SCHEMA.lease',
  `
BEGIN
  l.ends := (SELECT max(ends) FROM SCHEMA.shared WHERE key = l.key);
  IF l.ends IS NULL THEN
    l.owner := NULL;
    l.ends := clock_timestamp();
  END IF;
  SELECT since, holder INTO l.since, l.holder FROM SCHEMA.shared WHERE key = l.key AND owner IS NOT NULL ORDER BY number LIMIT 1;
  RETURN l;
END
`,
);

/**
 * Whether there is room for one more that so shares the key, or has it alone. A reserved place counts as the hold that
 * it will be.
 */
export const HAS_ROOM = sqlFunction(
  'has_room(l SCHEMA.lease, _shares bigint)',
  'boolean',
  `
BEGIN
  IF l.owner IS DISTINCT FROM '' THEN
    RETURN l.owner IS NULL AND l.turn IS NULL;
  END IF;
  RETURN _shares IS NOT NULL AND (
    SELECT count(*) < least(coalesce(nullif(_shares, 0), ${MOST_HOLDS}), min(nullif(shares, 0)))
      AND coalesce(bool_and((shares > 0) = (_shares > 0)), true)
    FROM SCHEMA.shared WHERE key = l.key
  );
END
`,
);

/** Adds a hold, or a place that room is reserved for, which has no owner. Reply: the row. */
export const ENTER = sqlFunction(
  'enter(l SCHEMA.lease, _name text, _shares bigint, _ttl_ms bigint, _owner text, _process text, _by text)',
  'SCHEMA.lease',
  `
BEGIN
  IF l.owner IS NULL THEN
    DELETE FROM SCHEMA.shared WHERE key = l.key;
    l.owner := '';
  END IF;
  INSERT INTO SCHEMA.shared (key, name, shares, ttl_ms, ends, owner, process, since, holder)
  VALUES (l.key, _name, _shares, _ttl_ms, ${fromNow('_ttl_ms')}, _owner, _process, clock_timestamp(), _by);
  RETURN l;
END
`,
);

/** Reserves room for a place. Reply: the row. */
export const RESERVE = sqlFunction(
  'reserve(l SCHEMA.lease, _place text)',
  'SCHEMA.lease',
  `
BEGIN
  RETURN SCHEMA.enter(l, _place, SCHEMA.shares_of(_place), ${CLAIM_MS}, NULL, NULL, NULL);
END
`,
);

/** Gives up room that is reserved for a place. Reply: whether it was. */
export const UNRESERVE = sqlFunction(
  'unreserve(_key text, _place text)',
  'boolean',
  `
BEGIN
  DELETE FROM SCHEMA.shared WHERE key = _key AND name = _place AND owner IS NULL;
  RETURN FOUND;
END
`,
);

/**
 * Sets the lease of a hold that shares the key to at least `_ttl_ms` from now, and to exactly that for one that
 * lingers. Reply: whether it is in.
 */
export const LENGTHEN = sqlFunction(
  'lengthen(_key text, _hold text, _owner text, _ttl_ms bigint, _by text, _lingering boolean)',
  'boolean',
  `
BEGIN
  UPDATE SCHEMA.shared SET
    ends = greatest(CASE WHEN NOT _lingering THEN ends END, ${fromNow('_ttl_ms')}),
    ttl_ms = greatest(ttl_ms, _ttl_ms),
    holder = coalesce(nullif(_by, ''), holder)
  WHERE key = _key AND name = _hold AND owner = _owner AND ends > clock_timestamp();
  RETURN FOUND;
END
`,
);

/** Cuts the time left to the longest asked for: more of it means that the clock was set back. Reply: the row. */
export const CUT_SHARED = sqlFunction(
  'cut_shared(l SCHEMA.lease)',
  'SCHEMA.lease',
  `
BEGIN
  UPDATE SCHEMA.shared SET ends = ${fromNow('ttl_ms')} WHERE key = l.key AND ends > ${fromNow('ttl_ms')};
  RETURN SCHEMA.sharing(l);
END
`,
);

/**
 * The kind of a key that is shared or held, where a hold needs the other one; otherwise NULL. Reservations have no
 * kind.
 */
export const OTHER_KIND = sqlFunction(
  'other_kind(l SCHEMA.lease, _shares bigint)',
  'text',
  `
DECLARE
  kind text := CASE WHEN l.owner IS NOT NULL THEN 'lock' END;
BEGIN
  IF l.owner = '' THEN
    kind := (SELECT CASE WHEN shares > 0 THEN 'semaphore' ELSE 'lock' END FROM SCHEMA.shared WHERE key = l.key AND owner IS NOT NULL LIMIT 1);
  END IF;
  RETURN nullif(kind, CASE WHEN _shares > 0 THEN 'semaphore' ELSE 'lock' END);
END
`,
);
