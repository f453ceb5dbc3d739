import type { Busy } from '../../core/seam/lock-store.js';
import type { Refusal } from './replies.js';

/**
 * The shortest pause before the process that has waited longest asks again, and before the next process does, in
 * milliseconds. Jitter makes each pause up to one half shorter.
 */
const SOON_MS = [10, 20] as const;
/** The longest of these pauses, in milliseconds. */
const LONGEST_SOON_MS = 250;

/**
 * Stands for a vote that was taken away before its fence was settled: the server answers, and does not vote for this
 * owner.
 */
export const GONE: Refusal = { remainingMs: 0, holder: { by: '', heldMs: 0 }, rank: 0 };

/**
 * The reply to an attempt that a majority cannot be for: in how long a majority could be free, as far as the servers
 * know. `votes` servers would vote, the others refused. The holder is the one that most refusals name. The attempt took
 * `tookMs`.
 */
export function busyReply(votes: number, refusals: readonly Refusal[], majority: number, tookMs: number): Busy {
  const remainingMs = [...Array.from({ length: votes }, () => 0), ...refusals.map((refusal) => refusal.remainingMs)];
  remainingMs.sort((first, second) => first - second);
  const holder = mostNamed(refusals);
  const rank = Math.min(...refusals.map((refusal) => refusal.rank));
  return { remainingMs: remainingMs[majority - 1] ?? 0, holder, recheckMs: recheckMs(rank, holder.heldMs, votes > 0 ? tookMs : 0) };
}

/**
 * When to ask again. The processes that have waited longest ask soon, the longer the lock is held the less often; the
 * others ask as core does. Where owners have split the votes, each has its own votes for `splitMs`: pauses that are as
 * long, and differ by as much, let one owner have all votes.
 */
function recheckMs(rank: number, heldMs: number, splitMs: number): number | undefined {
  const least = SOON_MS[rank];
  const soonMs = least && Math.min(Math.max(least, heldMs / 2), LONGEST_SOON_MS) * (0.5 + Math.random() / 2);
  return soonMs && Math.max(soonMs, Math.random() * Math.min(2 * splitMs, LONGEST_SOON_MS));
}

function mostNamed(refusals: readonly Refusal[]): Busy['holder'] {
  const named = new Map<string, number>();
  for (const { holder } of refusals) {
    named.set(holder.by, (named.get(holder.by) ?? 0) + 1);
  }
  const most = Math.max(...named.values());
  return (refusals.find(({ holder }) => named.get(holder.by) === most) as Refusal).holder;
}
