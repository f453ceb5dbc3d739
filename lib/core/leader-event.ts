import type { LockError, LostReason } from './errors.js';

/**
 * What happened to a candidate of `lead()` or `@Leader`.
 *
 * | change | when |
 * |---|---|
 * | `standby` | it waits to lead, for the first time or again |
 * | `elected` | it leads from now on, and its code begins |
 * | `revoked` | its code was notified to stop: the lease was lost, or the candidacy ends (`released`, `shutdown`) |
 * | `stillRuns` | its code did not stop in time, and goes on without the lock; it does not stand by before that has ended |
 * | `ended` | it leads no more, and its code has ended; `reason` is that of `revoked`, or how the code ended by itself |
 * | `failed` | it could not stand by, and tries again after a pause |
 *
 * `ledMs` counts from `elected`. `thrown` is what the code threw.
 */
export type LeaderChange =
  | { readonly change: 'standby' }
  | { readonly change: 'elected'; readonly fence: number; readonly waitedMs: number }
  | { readonly change: 'revoked' | 'stillRuns'; readonly fence: number; readonly ledMs: number; readonly reason: LostReason }
  | {
      readonly change: 'ended';
      readonly fence: number;
      readonly ledMs: number;
      readonly reason: LostReason | 'returned' | 'threw';
      readonly thrown: unknown;
    }
  | { readonly change: 'failed'; readonly error: LockError };
