import { LONGEST_COMMAND_MS } from '../../core/seam/time.js';

/** For how long an answer of a server is trusted, in milliseconds. */
export function recentMs(longestLeaseMs: number): number {
  return longestLeaseMs / 2 + LONGEST_COMMAND_MS;
}

/**
 * For how long reports hold, in milliseconds. A process counts votes of a server for `recentMs` after it has heard of
 * it, and a lease that these votes renew lasts for up to `longestLeaseMs` more. The last report of the process to
 * another server, which says so, is up to `recentMs` older.
 */
export function holdMs(longestLeaseMs: number): number {
  return 2 * recentMs(longestLeaseMs) + longestLeaseMs;
}
