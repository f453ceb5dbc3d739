import type { Busy, StoredLock } from '../../core/lock-store.js';

/** The answer to an attempt: the grant's fence, or who is in the way, the rank in the queue (-1 outside it), and whether the place is new there. */
export type AttemptReply = { readonly fence: number } | (Busy & { readonly rank: number; readonly joined: boolean });

/** The server's time in ms in what `ACQUIRE` answers. */
export function timeIn(reply: unknown): number {
  if (Array.isArray(reply)) {
    return Number(reply.at(-1));
  }
  const text = String(reply);
  const at = text.indexOf(' ');
  return at < 0 ? Number(text) / 1000 : Number(text.slice(at + 1));
}

/** Whether a command came too late to be carried out. */
export function isLate(reply: unknown): boolean {
  return Array.isArray(reply) && reply.length === 1;
}

/** Reads what `ACQUIRE` answers to an attempt in time. */
export function readAttempt(reply: unknown): AttemptReply {
  if (!Array.isArray(reply)) {
    return { fence: Number.parseInt(String(reply), 10) };
  }
  const [remainingMs, by, heldMs, rank, joined, turn] = reply as readonly unknown[];
  const holder = { by: turn === '' ? String(by) : processOf(String(turn)), heldMs: Number(heldMs) };
  return { remainingMs: Number(remainingMs), holder, rank: Number(rank), joined: Number(joined) === 1 };
}

/** Reads what `INSPECT` answers. */
export function readStored(reply: unknown): StoredLock | null {
  const [fence, holds, remainingMs, since, by, ...places] = reply as readonly unknown[];
  if (fence === undefined) {
    return null;
  }
  return {
    fence: Number(fence),
    holds: Number(holds),
    remainingMs: Number(remainingMs),
    since: new Date(Number(since)),
    by: String(by),
    waiters: places.map((place) => processOf(String(place))),
  };
}

/** Reads a list of 1 and 0. */
export function readAnswers(reply: unknown): boolean[] {
  return (reply as readonly unknown[]).map((answer) => Number(answer) === 1);
}

/** Host and process id of the process that has a place. */
function processOf(place: string): string {
  const [host, pid] = place.split(':');
  return `${host} (pid ${pid})`;
}
