/**
 * The numbers of the protocol that every store with turns keeps: the lock table, the Lua scripts and the SQL are
 * written with them.
 */

/**
 * How long the done mark of a hold stays, in milliseconds. It is made for a hold that was released while it was
 * unanswered: a repeated release answers the same, and a late acquire is refused.
 */
export const DONE_MS = 10_000;

/** How long a lock is reserved for the process whose turn it is, in milliseconds. */
export const CLAIM_MS = 1_000;

/** How long a queue stays that no acquire refreshes, in milliseconds. */
export const QUEUE_MS = 60_000;

/** The most holds that a lock may have: a ticket that is passed on and on must not fill the store. */
export const MOST_HOLDS = 1_000;

/** The highest fence: JavaScript cannot tell higher numbers apart. */
export const MOST_FENCE = Number.MAX_SAFE_INTEGER;

/** The most processes that are skipped in one hand-over because they are gone. */
export const MOST_SKIPPED = 64;

/**
 * After how many milliseconds a queued process asks again at the latest: `soon` at the head of the queue and where it
 * may not be notified, `late` otherwise.
 */
export const RECHECK_MS = { soon: 300, late: 2_000 } as const;
