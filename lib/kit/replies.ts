import type { Busy, StoredLock } from '../core/seam/lock-store.js';
import { shownProcess } from './process-name.js';
import type { KeyKind } from '../core/seam/shares.js';

/** Busy, with the rank in the queue (-1 outside it) and whether the place is new there. */
interface BusyReply extends Busy {
  readonly rank: number;
  readonly joined: boolean;
  /** The kind of the key, where the hold needs the other one. */
  readonly otherKind?: KeyKind;
}

/** The reply to an attempt: the fence of the grant, or busy. */
export type AttemptReply = { readonly fence: number } | BusyReply;

/** Reads a `fence`, or a busy reply as `readBusy` does. */
export function readAttempt(reply: unknown): AttemptReply {
  return Array.isArray(reply) ? readBusy(reply) : { fence: Number.parseInt(String(reply), 10) };
}

/**
 * Reads `[remaining ms, by, held ms, rank, 1 if it is new in the queue, place that the lock is reserved for or '',
 * anything, count of permits]`. The last two may be left out, and the count is no number for readers.
 */
export function readBusy(reply: readonly unknown[]): BusyReply {
  const [remainingMs, by, heldMs, rank, joined, turn, , permits] = reply;
  const holder = { by: turn === '' ? String(by) : shownProcess(String(turn)), heldMs: Number(heldMs) };
  const counted = Number(permits) > 0 ? { holder, permits: Number(permits) } : { holder };
  return { remainingMs: Number(remainingMs), ...counted, rank: Number(rank), joined: Number(joined) === 1 };
}

/**
 * Reads `[fence, holds, remaining ms, since in ms, by, places, processes]`, or null where nobody holds the lock. Where
 * holds share the key, `read` or their smallest count follows.
 */
export function readStored(reply: unknown): StoredLock | null {
  if (reply === null) {
    return null;
  }
  const [fence, holds, remainingMs, since, by, places, processes, shares] = reply as readonly unknown[];
  return {
    fence: Number(fence),
    holds: Number(holds),
    ...(shares !== undefined && { shares: shares === 'read' ? shares : Number(shares) }),
    remainingMs: Number(remainingMs),
    since: new Date(Number(since)),
    by: String(by),
    waiters: (places as readonly string[]).map(shownProcess),
    processes: processes as readonly string[],
  };
}
