import { LATE } from '../../sql/operation.js';

/** The SQL of a duration. */
export function interval(ms: number): string {
  return `interval '${ms} milliseconds'`;
}

/** The SQL of the time so many milliseconds from now; `ms` is an SQL expression. */
export function fromNow(ms: string): string {
  return `clock_timestamp() + ${ms} * interval '1 millisecond'`;
}

/**
 * Whether a command arrives later than its sender waits for the reply, by the server's clock. It is granted nothing
 * then, because no call would hold the lock. `_latest` is 0 where the sender does not know that clock.
 */
export const IS_LATE = '(_latest > 0 AND extract(epoch FROM clock_timestamp()) * 1000 > _latest)';

/** The SQL of the reply to an attempt that arrived late and would have been granted. */
export const LATE_REPLY = `to_json('${LATE}'::text)`;
