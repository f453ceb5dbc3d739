import { DONE, fromNow, LEASE, NOW } from '../tables.js';

/** The row of a key as variables, and the time of the operation. */
export const ROW_VARIABLES = `
  DECLARE l_owner VARBINARY(64);
  DECLARE l_fence, l_ttl_ms, l_since, l_ends, l_queue_ends, now_us BIGINT;
  DECLARE l_holder, l_holds, l_queue MEDIUMBLOB;
  DECLARE l_turn VARBINARY(512);
  DECLARE l_done_ends BIGINT;`;

const READ = `
  SELECT owner, fence, ttl_ms, since, holder, ends, holds, turn, queue, queue_ends, done_ends
    INTO l_owner, l_fence, l_ttl_ms, l_since, l_holder, l_ends, l_holds, l_turn, l_queue, l_queue_ends, l_done_ends
    FROM ${LEASE} WHERE name = _key FOR UPDATE;`;

/** Locks the row of `_key`, and makes it where there is none. Expired leases, turns and queues are left out. */
export const LOCK_ROW = `
  ${READ}
  IF l_fence IS NULL THEN
    INSERT INTO ${LEASE} (name) VALUES (_key) ON DUPLICATE KEY UPDATE fence = fence;
    ${READ}
  END IF;
  SET now_us = ${NOW};
  IF l_ends <= now_us THEN
    SET l_owner = NULL, l_holds = NULL, l_turn = NULL;
  END IF;
  IF l_queue_ends <= now_us THEN
    SET l_queue = NULL;
  END IF;`;

/** Writes the row that was locked. */
export const KEEP_ROW = `
  IF l_owner IS NULL AND coalesce(l_turn, '') = '' THEN
    SET l_turn = NULL, l_ends = least(l_ends, now_us);
  END IF;
  UPDATE ${LEASE} SET owner = l_owner, fence = l_fence, ttl_ms = l_ttl_ms, since = l_since, holder = l_holder, ends = l_ends,
    holds = l_holds, turn = l_turn, queue = l_queue, queue_ends = l_queue_ends, done_ends = l_done_ends
    WHERE name = _key;`;

/** Whether a command is `LATE`. */
export const IS_LATE = '(_latest > 0 AND now_us > _latest * 1000)';

/**
 * Changes the row where the answer confirms the work of an earlier run. That run may have been committed without its
 * replica, and a commit that changes nothing waits for no replica. A microsecond more has no effect in this column.
 */
export const TOUCH = `SET l_done_ends = l_done_ends + 1;`;

/** Makes the lease that was locked at least as long as `_ttl_ms` asks for. */
export const LENGTHEN = `SET l_ends = greatest(l_ends, ${fromNow('_ttl_ms')}), l_ttl_ms = greatest(l_ttl_ms, _ttl_ms);
  ${TOUCH}`;

/** Whether the hold is in the lock of its owner. */
export const IS_IN = `(l_owner <=> _owner AND locate(concat(';', _hold, '='), l_holds) > 0)`;

/** Whether the hold was released a short while ago, while it was unanswered. */
export const IS_DONE = `(l_done_ends > now_us AND EXISTS (SELECT 1 FROM ${DONE} WHERE hold = _hold AND ends > now_us))`;
