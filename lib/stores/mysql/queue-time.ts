/**
 * How long a queue stays that no acquire refreshes, in milliseconds, and when a place refreshes it. Longer than on other stores: a process
 * looks for its turns with one query for all of its keys, and asks for each of them only to refresh the queue. Processes that have
 * ended are skipped at once, or after the time of a reservation.
 */
export const QUEUE_MS = 180_000;
export const REFRESH_MS = 60_000;
