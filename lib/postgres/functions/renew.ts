import { fromNow, isOne, operation, sqlFunction } from './sql-function.js';

/**
 * Waits at most twice `_wait` for a row that another transaction has locked: once for a transaction that waits for the
 * row too, and once for the transaction that has it. It fails by itself, so that the other rows of the renewal lose no
 * more than that time.
 *
 * Reply: whether the row is locked here now.
 */
export const AWAIT_ROW = sqlFunction(
  'await_row(_key text, _wait interval)',
  'boolean',
  `
BEGIN
  IF _wait <= interval '0' THEN
    RETURN false;
  END IF;
  -- 0 would be no limit.
  PERFORM set_config('lock_timeout', ceil(extract(epoch FROM _wait) * 1000)::text, true);
  PERFORM FROM SCHEMA.lease WHERE key = _key FOR UPDATE;
  RETURN true;
EXCEPTION WHEN lock_not_available THEN
  RETURN false;
END
`,
);

/** Renews a hold that shares its key, whose row is locked. Reply: whether it is in, at that fence. */
export const RENEW_SHARED = sqlFunction(
  `renew_shared(_key text, _owner text, _fence bigint, _hold text, _ttl_ms bigint, _by text, _lingering boolean)`,
  'boolean',
  `
DECLARE
  l SCHEMA.lease;
BEGIN
  SELECT * INTO l FROM SCHEMA.lease WHERE key = _key AND owner = '' AND fence = _fence AND ends > clock_timestamp();
  IF NOT FOUND OR NOT SCHEMA.lengthen(_key, _hold, _owner, _ttl_ms, _by, _lingering) THEN
    RETURN false;
  END IF;
  PERFORM SCHEMA.keep(l);
  RETURN true;
END
`,
);

/**
 * Sets each lease to at least its ttl from now, and to exactly that for a hold that lingers alone, or shares its key.
 * The lists have an element for each hold. `waitMs`: how long the whole renewal waits for rows that others have locked.
 *
 * Reply: for each hold 1, 0 where it is no longer in its lock, or -1 where that is unknown because its row is locked.
 */
export const RENEW = operation(
  'renew',
  {
    keys: 'text[]',
    owners: 'text[]',
    fences: 'bigint[]',
    holds: 'text[]',
    ttlsMs: 'bigint[]',
    bys: 'text[]',
    lingering: 'boolean[]',
    waitMs: 'bigint',
  },
  `
DECLARE
  answers int[] := array_fill(0, ARRAY[cardinality(_keys)]);
  wait_until timestamptz := ${fromNow('_wait_ms')};
  i int;
BEGIN
  -- In one order everywhere: two renewals that lock the rows of each other would wait in vain.
  FOR i IN SELECT position FROM unnest(_keys) WITH ORDINALITY AS k (key, position) ORDER BY key COLLATE "C" LOOP
    PERFORM FROM SCHEMA.lease WHERE key = _keys[i] FOR UPDATE SKIP LOCKED;
    IF NOT FOUND AND EXISTS (SELECT FROM SCHEMA.lease WHERE key = _keys[i])
      AND NOT SCHEMA.await_row(_keys[i], (wait_until - clock_timestamp()) / 2)
    THEN
      answers[i] := -1;
      CONTINUE;
    END IF;
    UPDATE SCHEMA.lease SET
      ends = greatest(CASE WHEN _lingering[i] AND cardinality(holds) = 1 THEN NULL ELSE ends END, ${fromNow('_ttls_ms[i]')}),
      ttl_ms = greatest(ttl_ms, _ttls_ms[i]),
      holder = coalesce(nullif(_bys[i], ''), holder)
      WHERE key = _keys[i] AND owner = _owners[i] AND fence = _fences[i] AND _holds[i] = ANY (holds) AND ends > clock_timestamp();
    answers[i] := CASE
      WHEN FOUND THEN 1
      WHEN SCHEMA.renew_shared(_keys[i], _owners[i], _fences[i], _holds[i], _ttls_ms[i], _bys[i], _lingering[i]) THEN 1
      ELSE 0
    END;
  END LOOP;
  RETURN to_json(answers);
END
`,
  (replies) => (replies as readonly unknown[]).map((reply) => (reply === -1 ? undefined : isOne(reply))),
);
