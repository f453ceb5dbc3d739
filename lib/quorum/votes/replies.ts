import type { Busy } from '../../core/seam/lock-store.js';
import { isLate } from '../../redis/scripts/redis-commands.js';

/** The refusal of a vote. */
export interface Refusal extends Busy {
  /** How many other processes have waited longer. */
  readonly rank: number;
}

/** The reply to a vote: the fence that the server stored with it, a refusal, or that the command came late. */
export type VoteReply = { readonly fence: number } | Refusal | 'late';

/** Reads the reply to VOTE. */
export function readVote(reply: unknown): VoteReply {
  if (!Array.isArray(reply)) {
    return { fence: Number.parseInt(String(reply), 10) };
  }
  if (isLate(reply)) {
    return 'late';
  }
  const [remainingMs, by, heldMs, rank] = reply as readonly unknown[];
  return { remainingMs: Number(remainingMs), holder: { by: String(by), heldMs: Number(heldMs) }, rank: Number(rank) };
}

/**
 * The server's time in ms since 1970, from the reply to VOTE, or from a reply that refuses a late command; undefined in
 * other replies.
 */
export function serverTimeIn(reply: unknown): number | undefined {
  const time = Array.isArray(reply) ? Number(reply.at(-1)) : Number(String(reply).split(' ')[1]);
  return Number.isNaN(time) ? undefined : time;
}
