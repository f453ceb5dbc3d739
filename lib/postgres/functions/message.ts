import { sqlFunction } from './sql-function.js';

/**
 * Notifies a process, once the transaction is committed. The name of a channel has at most 63 bytes, so it leaves out
 * the host.
 *
 * `_process`: `<host>:<pid>:<8 hex digits>`. `_message`: `turn <place> <row>` or `forced <fence> <row>`.
 */
export const NOTIFY = sqlFunction(
  'notify(_process text, _message text)',
  'void',
  `
BEGIN
  PERFORM pg_notify('distributed_lock:' || substring(_process from '[^:]*:[^:]*$'), _message);
END
`,
);

/**
 * The advisory lock that stands for a process that listens. Its listener holds it, shared, for as long as its
 * connection lives. So when another session gets it exclusively, the process receives no messages.
 *
 * Reply: the number of the lock.
 */
export const PRESENCE = sqlFunction(
  'presence(_process text)',
  'bigint',
  `
BEGIN
  RETURN hashtextextended('distributed_lock ' || _process, 0);
END
`,
);

/**
 * Whether a process listens. A session that gets the lock exclusively releases it at once, as the end of a block does
 * that raises: kept until the commit, it would make the process present for all other sessions. PGlite has one session
 * for all, which gets the lock exclusively even while it holds it shared.
 */
export const IS_PRESENT = sqlFunction(
  'is_present(_process text)',
  'boolean',
  `
DECLARE
  is_gone boolean;
BEGIN
  BEGIN
    is_gone := pg_try_advisory_xact_lock(SCHEMA.presence(_process));
    IF is_gone THEN
      RAISE EXCEPTION USING ERRCODE = 'LK002';
    END IF;
  EXCEPTION WHEN SQLSTATE 'LK002' THEN
    NULL;
  END;
  RETURN NOT is_gone OR EXISTS (
    SELECT FROM pg_locks
    WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND mode = 'ShareLock'
      AND (classid::bigint << 32 | objid::bigint) = SCHEMA.presence(_process)
  );
END
`,
);
