/** For how long a process may acquire a lock again and again while other processes wait for it, in milliseconds. */
export const SLICE_MS = 50;
/**
 * How much longer another process must have waited to go first, in milliseconds: processes that came at about the same
 * time need no order.
 */
export const ABOUT_MS = 50;
/**
 * For how long after its last refusal a process counts as waiting, in milliseconds: core asks again every 250 ms at the
 * latest.
 */
export const PRESENT_MS = 500;
/** How far a fence may be ahead of the clock of the server that gives it, in microseconds. */
export const MOST_AHEAD_US = 1_000_000;
