import type { Busy, StoredLock } from '../../core/lock-store.js';

/**
 * The reply to an attempt: the fence of the grant; or who holds the lock, the rank in the queue (-1 outside it), and
 * whether the place is new there.
 */
export type AttemptReply = { readonly fence: number } | (Busy & { readonly rank: number; readonly joined: boolean });

/** Reads the reply of `acquire`. */
export function readAttempt(reply: unknown): AttemptReply {
  if (!Array.isArray(reply)) {
    return { fence: Number(reply) };
  }
  const [remainingMs, by, heldMs, rank, joined, turn] = reply as readonly unknown[];
  const holder = { by: turn === '' ? String(by) : processOf(String(turn)), heldMs: Number(heldMs) };
  return { remainingMs: Number(remainingMs), holder, rank: Number(rank), joined: Number(joined) === 1 };
}

/** Reads the reply of `inspect`. */
export function readStored(reply: unknown): StoredLock | null {
  if (reply === null) {
    return null;
  }
  const [fence, holds, remainingMs, since, by, places] = reply as readonly unknown[];
  return {
    fence: Number(fence),
    holds: Number(holds),
    remainingMs: Number(remainingMs),
    since: new Date(Number(since)),
    by: String(by),
    waiters: (places as readonly string[]).map(processOf),
  };
}

/** Host and process id of the process that has a place. */
function processOf(place: string): string {
  const [host, pid] = place.split(':');
  return `${host} (pid ${pid})`;
}
