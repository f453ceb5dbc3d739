/**
 * The prefix of the names of all tables and procedures. They are in the database of the pool, beside the tables of the
 * application.
 */
export const NAMES = 'distributed_lock_';

/** The table of locks. */
export const LEASE = `${NAMES}lease`;
/** The table of done marks. */
export const DONE = `${NAMES}done`;

/** The name of a table or procedure, with the name of its database where one is given. */
export function qualified(name: string, database: string | undefined): string {
  return database === undefined ? name : `\`${database.replaceAll('`', '``')}\`.${name}`;
}

/**
 * The server's clock in µs since 1970, when the statement began. It does not depend on the time zone of the session,
 * but on its variable `timestamp`, which makes the clock stand still: procedures set that back first, and plain
 * statements ask `IS_HONEST`.
 */
export const NOW = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";

/** Ends a transaction, whatever `completion_type` the session has. */
export const ROLLBACK = 'ROLLBACK AND NO CHAIN NO RELEASE';

/** By how much `NOW` may be behind the clock, in µs. */
const MOST_BEHIND = 1_000_000;
/**
 * The time since the statement began, in µs. Where the server was started with
 * `sysdate-is-now`, it is 0.
 */
const ELAPSED = 'TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6))';

/**
 * The clock in µs since 1970, for code that only shows it; it needs no right to a procedure. It is the clock of the
 * session only where the server was started with `sysdate-is-now`.
 */
export const SHOWN_CLOCK = `TIMESTAMPDIFF(MICROSECOND, '1970-01-01', TIMESTAMPADD(MICROSECOND, ${ELAPSED}, UTC_TIMESTAMP(6)))`;

/** Whether `NOW` is behind the clock by less than a second, and known to be. */
export const IS_HONEST = `${ELAPSED} BETWEEN 1 AND ${MOST_BEHIND}`;

/**
 * The clock now, for times that must not be too early where the clock of the session stands still. It is within a
 * second of `NOW`, also where the time zone of the session has a change of its offset between the two.
 */
export const LATER = `(${NOW} + least(greatest(${ELAPSED}, 0), ${MOST_BEHIND}))`;

/** The SQL of the time so many milliseconds from `now_us`; `ms` is an SQL expression. */
export function fromNow(ms: string | number): string {
  return `now_us + ${ms} * 1000`;
}

/**
 * How long a queue stays that no acquire refreshes, in milliseconds, and when a place refreshes it. The times are
 * longer than on other stores: a process polls for its turns with one query for all of its keys, and asks for a single
 * key only to refresh the queue. Processes that have ended are skipped at once, or after the time of a reservation.
 */
export const QUEUE_MS = 180_000;
export const REFRESH_MS = 60_000;

/**
 * The tables of the locks. Times are microseconds since 1970.
 *
 * `lease` has a row per key, which stays when the lock is free:
 *
 * | column | |
 * |---|---|
 * | `owner`, `fence` | of the lock; the fence is the last one where the lock is free |
 * | `ttl_ms` | the longest lease asked for, in milliseconds |
 * | `since`, `holder` | when it was acquired, and by whom, for messages |
 * | `ends` | the end of the lease or of the reservation; in the past where the lock is free |
 * | `holds` | `;<id>=<process>;<id>=<process>;` |
 * | `turn` | the place that the lock is reserved for |
 * | `queue`, `queue_ends` | `;<place>;<place>;`, first come first, and until when the queue stays |
 * | `done_ends` | until when there may be done marks of this key |
 *
 * A place is called `<process>:<name>`, with `~` behind it where its process polls, because nothing can wake it.
 * `holds`, `turn` and `queue` are NULL where they are empty.
 *
 * `done` has a row per hold that was released while it was unanswered: the first answer, and until when it is kept.
 */
export const TABLES: readonly { readonly name: string; readonly columns: string }[] = [
  {
    name: LEASE,
    columns: `
  name VARBINARY(2048) NOT NULL PRIMARY KEY,
  owner VARBINARY(64),
  fence BIGINT NOT NULL DEFAULT 0,
  ttl_ms BIGINT NOT NULL DEFAULT 0,
  since BIGINT NOT NULL DEFAULT 0,
  holder MEDIUMBLOB,
  ends BIGINT NOT NULL DEFAULT 0,
  holds MEDIUMBLOB,
  turn VARBINARY(512),
  queue MEDIUMBLOB,
  queue_ends BIGINT NOT NULL DEFAULT 0,
  done_ends BIGINT NOT NULL DEFAULT 0`,
  },
  {
    name: DONE,
    columns: `
  hold VARBINARY(64) NOT NULL PRIMARY KEY,
  answer TINYINT NOT NULL,
  ends BIGINT NOT NULL,
  KEY ${DONE}_ends (ends)`,
  },
];
