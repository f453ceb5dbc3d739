import { MOST_FENCE, MOST_HOLDS } from '../kit/protocol.js';

/** For how long a lock is reserved for the process whose turn it is. */
const CLAIM = `interval '1 second'`;
/** For how long a queue stays that nobody probes. */
const QUEUE = `interval '1 minute'`;
/** For how long a released hold is remembered, so that a duplicate of its commands answers as the first did. */
const DONE = `interval '10 seconds'`;
/**
 * For how long an operation waits for a row that another transaction has locked, before the server refuses it.
 * Without a limit its backend waits on when nobody waits for it any more.
 */
const LOCK_WAIT = '800ms';
/** The server's clock in µs, as a fence. */
const CLOCK = '(extract(epoch FROM clock_timestamp()) * 1000000)::bigint';
/**
 * Whether a command comes later than its sender waits for the reply, by this clock: the lock would be nobody's. 0:
 * not known.
 */
const IS_LATE = '(_latest > 0 AND extract(epoch FROM clock_timestamp()) * 1000 > _latest)';
/** The answer to an attempt that comes too late: it may have the lock, and is not granted it. */
export const LATE = 'late';
const TOO_LATE = `to_json('${LATE}'::text)`;
/** Rows that one run of a purge looks at, and done marks that one run of a tidying takes away. */
export const BATCH = 1_000;

/**
 * The operations of the PostgreSQL store: what the scripts of the Redis store do, one function each. Every one may run twice, and
 * all but `force_release`, which nothing repeats, answer the second time as they did the first. `SCHEMA` stands for the schema.
 *
 * The table `lease` has a row per key, which stays when the lock is free: owner, fence (the last one), ttl_ms (the longest
 * asked for), since, holder, ends (of the lease or of the reservation; in the past where the lock is free), holds and
 * processes (side by side, one of each per hold), turn (the place that the lock is reserved for), queue (places, first
 * come first), polling (those of them that look for their turn by themselves: that nobody hears their message does not mean that they are
 * gone) and queue_ends. A place is called `<process>:<name>`. Lists of holds and places are NULL where they are empty.
 *
 * Each operation locks the row of its key, and then reads the clock and the done marks in statements of their own, which see
 * what was committed while it waited. Where the isolation level of a session is higher than READ COMMITTED they see
 * less, and the server refuses to write a row that has changed meanwhile: so each operation on a hold writes its row, changed or not.
 */
function define(declaration: string, returns: string, body: string, settings = ''): string {
  return `CREATE OR REPLACE FUNCTION SCHEMA.${declaration} RETURNS ${returns} LANGUAGE plpgsql ${settings}AS $body$${body}$body$;`;
}

/**
 * A function that a process calls: an operation. Its settings end with it, and hold for the functions that it calls.
 * A session plans once: a plan that was made while a table was small would scan it when it has grown.
 */
function operation(declaration: string, body: string): string {
  return define(declaration, 'text', body, `SET lock_timeout = '${LOCK_WAIT}' SET enable_seqscan = off `);
}

/** A time so many milliseconds from now. */
function fromNow(ms: string): string {
  return `clock_timestamp() + ${ms} * interval '1 millisecond'`;
}

/** Locks the row of a key, made where there is none. Reply: the row, without what has run out. */
const LOCKED = define(
  'locked(_key text)',
  'SCHEMA.lease',
  `
DECLARE
  l SCHEMA.lease;
BEGIN
  LOOP
    SELECT * INTO l FROM SCHEMA.lease WHERE key = _key FOR UPDATE;
    EXIT WHEN FOUND;
    INSERT INTO SCHEMA.lease (key, ends) VALUES (_key, clock_timestamp()) ON CONFLICT DO NOTHING;
  END LOOP;
  IF l.ends <= clock_timestamp() THEN
    l.owner := NULL;
    l.holds := NULL;
    l.processes := NULL;
    l.turn := NULL;
  END IF;
  IF l.queue_ends <= clock_timestamp() THEN
    l.queue := NULL;
    l.polling := NULL;
  END IF;
  RETURN l;
END
`,
);

/** Writes a row that `locked` gave. */
const KEEP = define(
  'keep(l SCHEMA.lease)',
  'void',
  `
BEGIN
  IF l.owner IS NULL AND (l.turn IS NULL OR l.turn = '') THEN
    l.turn := NULL;
    l.ends := least(l.ends, clock_timestamp());
  END IF;
  UPDATE SCHEMA.lease SET
    owner = l.owner, fence = l.fence, ttl_ms = l.ttl_ms, since = l.since, holder = l.holder, ends = l.ends, holds = l.holds,
    processes = l.processes, turn = l.turn, queue = l.queue, polling = l.polling, queue_ends = l.queue_ends
  WHERE key = l.key;
END
`,
);

/** Whether a hold was released a short while ago. */
const IS_DONE = define(
  'is_done(_hold text)',
  'boolean',
  `
BEGIN
  RETURN EXISTS (SELECT FROM SCHEMA.done WHERE hold = _hold AND ends > clock_timestamp());
END
`,
);

/** Sends a message to a process, once the operation is committed. A name of a channel has at most 63 bytes, so it is without the host. */
const TELL = define(
  'tell(_process text, _message text)',
  'void',
  `
BEGIN
  PERFORM pg_notify('distributed_lock:' || substring(_process from '[^:]*:[^:]*$'), _message);
END
`,
);

/**
 * The advisory lock that stands for a process that listens. Its listener keeps it, shared, for as long as its connection lives, so
 * that whoever can have it alone knows that the process hears nothing.
 */
const PRESENCE = define(
  'presence(_process text)',
  'bigint',
  `
BEGIN
  RETURN hashtextextended('distributed_lock ' || _process, 0);
END
`,
);

/** Whether a process listens. PGlite has one session for all, which may have even a lock that it keeps. */
const IS_PRESENT = define(
  'is_present(_process text)',
  'boolean',
  `
BEGIN
  RETURN NOT pg_try_advisory_xact_lock(SCHEMA.presence(_process)) OR EXISTS (
    SELECT FROM pg_locks
    WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND mode = 'ShareLock'
      AND (classid::bigint << 32 | objid::bigint) = SCHEMA.presence(_process)
  );
END
`,
);

/**
 * Reserves a free lock for the first in the queue, and tells it. `_mine` is the place of whoever asks, who is there whether or not it
 * hears messages. Reply: the row, whose turn is NULL where nobody waits and '' where too many were gone.
 */
const HAND_OVER = define(
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
  FOR skipped IN 1..64 LOOP
    place := l.queue[1];
    l.turn := place;
    IF place IS NULL THEN
      RETURN l;
    END IF;
    -- Off the queue before it is told: a reservation that nobody claims is not given to the same process again.
    polls := coalesce(place = ANY (l.polling), false);
    l := SCHEMA.off_queue(l, place);
    l.ends := clock_timestamp() + ${CLAIM};
    process := substring(place from '^(.*):');
    IF polls OR place = _mine OR SCHEMA.is_present(process) THEN
      IF NOT polls THEN
        PERFORM SCHEMA.tell(process, 'turn ' || substring(place from '[^:]*$') || ' ' || l.key);
      END IF;
      RETURN l;
    END IF;
  END LOOP;
  l.turn := '';
  RETURN l;
END
`,
);

/** Takes a place off the queue. Reply: the row. */
const OFF_QUEUE = define(
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

/** The fence, where JavaScript can count so far. Raised in the midst of an operation, the error undoes it. */
const COUNTABLE = define(
  'countable(_fence bigint)',
  'bigint',
  `
BEGIN
  IF _fence > ${MOST_FENCE} THEN
    RAISE EXCEPTION 'FENCE %', _fence;
  END IF;
  RETURN _fence;
END
`,
);

/** Grants a lock whose row is locked. Reply: the fence. */
const GIVE = define(
  'give(l SCHEMA.lease, _owner text, _hold text, _process text, _ttl_ms bigint, _by text, _place text)',
  'json',
  `
BEGIN
  l := SCHEMA.off_queue(l, _place);
  l.owner := _owner;
  l.fence := SCHEMA.countable(greatest(l.fence + 1, ${CLOCK}));
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

/** What `acquire` does with a row that is locked. Reply: the same. */
const CONTEND = define(
  `contend(l SCHEMA.lease, _owner text, _hold text, _process text, _ttl_ms bigint, _by text, _place text, _polls boolean,
  _latest bigint)`,
  'json',
  `
DECLARE
  most_ms bigint;
  left_ms bigint;
  joined int := 0;
BEGIN
  IF SCHEMA.is_done(_hold) THEN
    PERFORM SCHEMA.keep(l);
    RETURN json_build_array(0, '', 0, -1, 0, '');
  END IF;
  IF l.owner IS NULL AND l.turn IS NULL AND l.queue[1] IS DISTINCT FROM _place THEN
    l := SCHEMA.hand_over(l, _place);
  END IF;
  IF l.owner IS NULL AND coalesce(l.turn = _place, l.turn IS NULL) THEN
    IF ${IS_LATE} THEN
      PERFORM SCHEMA.keep(l);
      RETURN ${TOO_LATE};
    END IF;
    RETURN SCHEMA.give(l, _owner, _hold, _process, _ttl_ms, _by, _place);
  END IF;
  IF l.owner = _owner AND _hold = ANY (l.holds) THEN
    l.ends := greatest(l.ends, ${fromNow('_ttl_ms')});
    l.ttl_ms := greatest(l.ttl_ms, _ttl_ms);
    PERFORM SCHEMA.keep(l);
    RETURN to_json(l.fence);
  END IF;
  -- More time left than was ever asked for: the server's clock was set back.
  most_ms := CASE WHEN l.owner IS NULL THEN extract(epoch FROM ${CLAIM}) * 1000 ELSE l.ttl_ms END;
  left_ms := ceil(extract(epoch FROM l.ends - clock_timestamp()) * 1000);
  IF left_ms > most_ms THEN
    left_ms := most_ms;
    l.ends := ${fromNow('left_ms')};
  END IF;
  IF _place IS NOT NULL THEN
    IF array_position(l.queue, _place) IS NULL THEN
      l.queue := l.queue || _place;
      joined := 1;
    END IF;
    l.polling := array_remove(l.polling, _place) || CASE WHEN _polls THEN ARRAY[_place] END;
    l.queue_ends := clock_timestamp() + ${QUEUE};
  END IF;
  PERFORM SCHEMA.keep(l);
  RETURN json_build_array(
    greatest(0, left_ms),
    CASE WHEN l.owner IS NULL THEN '' ELSE l.holder END,
    CASE WHEN l.owner IS NULL THEN 0 ELSE greatest(0, floor(extract(epoch FROM clock_timestamp() - l.since) * 1000)) END,
    coalesce(array_position(l.queue, _place), 0) - 1,
    joined,
    coalesce(l.turn, '')
  );
END
`,
);

/** Takes a hold out of a row that is locked. Reply: the row, the first answer to this release, and whether this run took the last hold out. */
const LET_GO = define(
  'let_go(INOUT l SCHEMA.lease, _hold text, OUT answer int, OUT is_last boolean)',
  'record',
  `
DECLARE
  at int := array_position(l.holds, _hold);
BEGIN
  is_last := false;
  IF at IS NULL THEN
    SELECT d.answer INTO answer FROM SCHEMA.done AS d WHERE d.hold = _hold AND d.ends > clock_timestamp();
    IF FOUND THEN
      RETURN;
    END IF;
  END IF;
  answer := CASE WHEN at IS NULL THEN 0 ELSE 1 END;
  INSERT INTO SCHEMA.done AS d (hold, answer, ends) VALUES (_hold, answer, clock_timestamp() + ${DONE})
    ON CONFLICT (hold) DO UPDATE SET answer = excluded.answer, ends = excluded.ends;
  IF at IS NOT NULL THEN
    l.holds := nullif(l.holds[:at - 1] || l.holds[at + 1:], '{}');
    l.processes := nullif(l.processes[:at - 1] || l.processes[at + 1:], '{}');
    is_last := l.holds IS NULL;
  END IF;
END
`,
);

/**
 * Grants a lock that is free and nobody else's turn, or confirms the grant to a hold that is in; else queues at the place, if
 * one is given.
 *
 * Reply: the fence, or `[remaining ms, by, held ms, rank in the queue or -1, 1 if it is new there, place it is reserved for or '']`
 * where another owner has it, it is another's turn, or this hold has ended; or `late` where it may have it, and comes
 * later than `_latest`.
 */
const ACQUIRE = operation(
  `acquire(_key text, _owner text, _hold text, _process text, _ttl_ms bigint, _by text, _place text, _polls boolean,
  _latest bigint)`,
  `
DECLARE
  granted bigint;
  is_done boolean;
BEGIN
  -- A lock that is free, and that nobody waits for, in one statement; or in two, where its key is new.
  UPDATE SCHEMA.lease SET
    owner = _owner, fence = greatest(fence + 1, ${CLOCK}), ttl_ms = _ttl_ms, since = clock_timestamp(), holder = _by,
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
  -- Only now: the row may have been locked for long, and a release of this hold may have had it meanwhile.
  is_done := EXISTS (SELECT FROM SCHEMA.done WHERE hold = _hold AND ends > clock_timestamp());
  IF is_done OR ${IS_LATE} THEN
    UPDATE SCHEMA.lease SET owner = NULL, holds = NULL, processes = NULL, ends = clock_timestamp() WHERE key = _key;
    RETURN CASE WHEN is_done THEN json_build_array(0, '', 0, -1, 0, '') ELSE ${TOO_LATE} END;
  END IF;
  RETURN to_json(SCHEMA.countable(granted));
END
`,
);

/**
 * Releases a hold and acquires for the next caller of the same process, before the queue where it may.
 *
 * Reply: a list of that of release, which is carried out also where it comes late, and that of acquire.
 */
const PASS = operation(
  `pass(_key text, _owner text, _hold text, _process text, _ttl_ms bigint, _by text, _place text, _polls boolean,
  _released text, _may_pass boolean, _latest bigint)`,
  `
DECLARE
  l SCHEMA.lease := SCHEMA.locked(_key);
  freed record;
  may_give boolean;
  reply json;
BEGIN
  freed := SCHEMA.let_go(l, _released);
  l := freed.l;
  -- A command that comes late must not pass the lock to a hold that has ended, or that nobody waits for any more. The
  -- place may be queued already by a later one.
  may_give := freed.is_last AND _may_pass AND NOT SCHEMA.is_done(_hold);
  IF may_give AND NOT ${IS_LATE} THEN
    reply := SCHEMA.give(l, _owner, _hold, _process, _ttl_ms, _by, _place);
  ELSE
    IF freed.is_last THEN
      l := SCHEMA.hand_over(l, NULL);
    END IF;
    IF may_give THEN
      PERFORM SCHEMA.keep(l);
      reply := ${TOO_LATE};
    ELSE
      -- Where too many were gone, this attempt looks at the others.
      l.turn := nullif(l.turn, '');
      reply := SCHEMA.contend(l, _owner, _hold, _process, _ttl_ms, _by, _place, _polls, _latest);
    END IF;
  END IF;
  RETURN json_build_array(freed.answer, reply);
END
`,
);

/**
 * Adds a hold to a running lock; never creates one. Reply 1, 0 where that lock has ended, or -1 where it has as many
 * holds as it may; or `late`.
 */
const JOIN = operation(
  'join(_key text, _owner text, _fence bigint, _hold text, _process text, _ttl_ms bigint, _latest bigint)',
  `
DECLARE
  l SCHEMA.lease := SCHEMA.locked(_key);
  at int := array_position(l.holds, _hold);
BEGIN
  IF l.owner IS DISTINCT FROM _owner OR l.fence <> _fence OR SCHEMA.is_done(_hold) THEN
    RETURN 0;
  END IF;
  IF at IS NULL THEN
    at := cardinality(l.holds) + 1;
    IF at > ${MOST_HOLDS} THEN
      RETURN -1;
    END IF;
    IF ${IS_LATE} THEN
      RETURN ${TOO_LATE};
    END IF;
  END IF;
  l.holds[at] := _hold;
  l.processes[at] := _process;
  l.ends := greatest(l.ends, ${fromNow('_ttl_ms')});
  l.ttl_ms := greatest(l.ttl_ms, _ttl_ms);
  PERFORM SCHEMA.keep(l);
  RETURN 1;
END
`,
);

/**
 * Waits for a row that is locked, for so long. A row that is locked for longer costs the others of a renewal nothing
 * but that. Reply: whether it is locked here now.
 */
const AWAIT_ROW = define(
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

/**
 * Sets each lease to at least its ttl from now; to just that for a hold that lingers, unless others are in. Reply for each: 1, 0
 * where its lock is gone, or -1 where its row is locked and nobody knows. All of them together wait `_wait_ms` for rows that are locked.
 */
const RENEW = operation(
  'renew(_keys text[], _owners text[], _fences bigint[], _holds text[], _ttls_ms bigint[], _lingering boolean[], _wait_ms bigint)',
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
      AND NOT SCHEMA.await_row(_keys[i], wait_until - clock_timestamp())
    THEN
      answers[i] := -1;
      CONTINUE;
    END IF;
    UPDATE SCHEMA.lease SET
      ends = greatest(CASE WHEN _lingering[i] AND cardinality(holds) = 1 THEN NULL ELSE ends END, ${fromNow('_ttls_ms[i]')}),
      ttl_ms = greatest(ttl_ms, _ttls_ms[i])
      WHERE key = _keys[i] AND owner = _owners[i] AND fence = _fences[i] AND _holds[i] = ANY (holds) AND ends > clock_timestamp();
    answers[i] := CASE WHEN FOUND THEN 1 ELSE 0 END;
  END LOOP;
  RETURN to_json(answers);
END
`,
);

/**
 * Takes a hold out; the last one hands the lock over, or frees it. The done mark keeps the first answer, and refuses an acquire of the
 * same hold that comes late.
 *
 * Reply 1, or 0 where the hold was no longer in.
 */
const RELEASE = operation(
  'release(_key text, _hold text)',
  `
DECLARE
  l SCHEMA.lease;
  freed record;
BEGIN
  -- The only hold of a lock that nobody waits for, in one statement and its mark.
  UPDATE SCHEMA.lease SET owner = NULL, holds = NULL, processes = NULL, ends = clock_timestamp()
    WHERE key = _key AND holds = ARRAY[_hold] AND ends > clock_timestamp() AND queue IS NULL;
  IF FOUND THEN
    INSERT INTO SCHEMA.done (hold, answer, ends) VALUES (_hold, 1, clock_timestamp() + ${DONE})
      ON CONFLICT (hold) DO UPDATE SET answer = excluded.answer, ends = excluded.ends;
    RETURN 1;
  END IF;
  l := SCHEMA.locked(_key);
  freed := SCHEMA.let_go(l, _hold);
  l := freed.l;
  IF freed.is_last THEN
    l := SCHEMA.hand_over(l, NULL);
  END IF;
  PERFORM SCHEMA.keep(l);
  RETURN freed.answer;
END
`,
);

/** Gives up a place in the queue, or the turn it came to, and no later one. Reply 1. */
const LEAVE = operation(
  'leave(_key text, _place text)',
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
);

/** What is stored of a lock. Reply `[fence, holds, remaining ms, since in ms, by, [first place, …]]`, or NULL where nobody holds it. */
const INSPECT = operation(
  'inspect(_key text)',
  `
BEGIN
  RETURN (
    SELECT json_build_array(
      fence,
      cardinality(holds),
      ceil(extract(epoch FROM ends - clock_timestamp()) * 1000),
      floor(extract(epoch FROM since) * 1000),
      holder,
      CASE WHEN queue_ends > clock_timestamp() THEN coalesce(queue, '{}') ELSE '{}' END
    )
    FROM SCHEMA.lease WHERE key = _key AND owner IS NOT NULL AND ends > clock_timestamp()
  );
END
`,
);

/** Frees a lock, if its fence is the one named: hands it over, and tells the processes that hold it. Reply 1, or 0 where it is not held at that fence. */
const FORCE_RELEASE = operation(
  'force_release(_key text, _fence bigint)',
  `
DECLARE
  l SCHEMA.lease := SCHEMA.locked(_key);
  held text[] := l.processes;
BEGIN
  IF l.owner IS NULL OR l.fence <> _fence THEN
    RETURN 0;
  END IF;
  PERFORM SCHEMA.keep(SCHEMA.hand_over(l, NULL));
  PERFORM SCHEMA.tell(process, 'forced ' || _fence || ' ' || _key) FROM (SELECT DISTINCT unnest(held) AS process) AS each;
  RETURN 1;
END
`,
);

/** Takes done marks away that have run out. Reply: how many. */
const TIDY = operation(
  'tidy()',
  `
DECLARE
  removed bigint;
BEGIN
  DELETE FROM SCHEMA.done WHERE hold IN (
    SELECT hold FROM SCHEMA.done WHERE ends <= clock_timestamp() ORDER BY ends LIMIT ${BATCH} FOR UPDATE SKIP LOCKED
  );
  GET DIAGNOSTICS removed = ROW_COUNT;
  RETURN to_json(removed);
END
`,
);

/**
 * Takes the rows of locks away that have been free and without a queue for that long, among the next keys that begin with a prefix.
 *
 * Reply `[rows that were taken away, last key that was looked at or NULL where there are no more]`.
 */
const PURGE = operation(
  'purge(_prefix text, _after text, _older_ms bigint)',
  `
DECLARE
  keys text[] := ARRAY(
    SELECT key FROM SCHEMA.lease WHERE key > _after AND starts_with(key, _prefix) ORDER BY key LIMIT ${BATCH}
  );
  free_since timestamptz := clock_timestamp() - _older_ms * interval '1 millisecond';
  removed bigint;
BEGIN
  DELETE FROM SCHEMA.lease WHERE key IN (
    SELECT key FROM SCHEMA.lease
    WHERE key = ANY (keys) AND ends <= free_since AND (queue IS NULL OR queue_ends <= free_since)
    FOR UPDATE SKIP LOCKED
  );
  GET DIAGNOSTICS removed = ROW_COUNT;
  RETURN json_build_array(removed, keys[cardinality(keys)]);
END
`,
);

/**
 * Writes down which of several databases this is, such as `1 of 2`, where nobody has; not for one that is alone.
 * Reply: what is written down, or NULL. It lies in a row that is no lock's, and needs no rights of its own.
 */
const NUMBERED = operation(
  'numbered(_key text, _number text)',
  `
BEGIN
  IF _number <> '1 of 1' AND NOT EXISTS (SELECT FROM SCHEMA.lease WHERE key = _key) THEN
    INSERT INTO SCHEMA.lease (key, holder, ends) VALUES (_key, _number, 'epoch') ON CONFLICT DO NOTHING;
  END IF;
  RETURN (SELECT to_json(holder) FROM SCHEMA.lease WHERE key = _key);
END
`,
);

/** All functions, each after those that it uses. */
export const FUNCTIONS: readonly string[] = [
  LOCKED,
  KEEP,
  IS_DONE,
  TELL,
  PRESENCE,
  IS_PRESENT,
  OFF_QUEUE,
  HAND_OVER,
  COUNTABLE,
  GIVE,
  CONTEND,
  LET_GO,
  ACQUIRE,
  PASS,
  JOIN,
  AWAIT_ROW,
  RENEW,
  RELEASE,
  LEAVE,
  INSPECT,
  FORCE_RELEASE,
  TIDY,
  PURGE,
  NUMBERED,
];
