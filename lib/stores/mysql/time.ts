/** The server's clock in µs since 1970, when the statement began. It does not depend on the time zone of the session. */
export const NOW = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";

/** The SQL of the time so many milliseconds from `now_us`; `ms` is an SQL expression. */
export function fromNow(ms: string | number): string {
  return `now_us + ${ms} * 1000`;
}

/** Whether a command is `LATE`. */
export const IS_LATE = '(_latest > 0 AND now_us > _latest * 1000)';

/**
 * How long a queue stays that no acquire refreshes, in milliseconds, and when a place refreshes it. Longer than on other stores: a process
 * looks for its turns with one query for all of its keys, and asks for each of them only to refresh the queue. Processes that have
 * ended are skipped at once, or after the time of a reservation.
 */
export const QUEUE_MS = 180_000;
export const REFRESH_MS = 60_000;
