import { randomUUID } from 'node:crypto';
import type { Clock } from './clock.js';
import { LockLostError, LockStoreError } from './errors.js';
import type { Hold } from './hold.js';
import { leaseDeadline } from './lease.js';
import type { Busy, LockStore } from './lock-store.js';

/** How one attempt ended. A `late` grant came after its own deadline and is none; `failed` says whether it may have been carried out. */
export type AttemptResult =
  | { readonly outcome: 'granted'; readonly sentAt: number }
  | { readonly outcome: 'late' }
  | { readonly outcome: 'busy'; readonly busy: Busy }
  | { readonly outcome: 'failed'; readonly error: LockStoreError };

/** Sends one acquire, or one join for a hold with a ticket. Rejects with what no retry mends. */
export async function attempt(store: LockStore, hold: Hold, clock: Clock): Promise<AttemptResult> {
  const sentAt = clock.monotonic();
  let fence: number;
  try {
    if (hold.joined) {
      if (!(await store.join(hold))) {
        throw ticketEnded(hold.key);
      }
      fence = hold.fence;
    } else {
      const reply = await store.acquire(hold);
      if (reply.fence === undefined) {
        return { outcome: 'busy', busy: reply };
      }
      fence = reply.fence;
    }
  } catch (error) {
    if (error instanceof LockStoreError) {
      return { outcome: 'failed', error };
    }
    throw error;
  }
  if (store.expires && clock.monotonic() >= leaseDeadline(sentAt, hold.ttlMs)) {
    return { outcome: 'late' };
  }
  hold.fence = fence;
  return { outcome: 'granted', sentAt };
}

/** A hold that was given back never comes in again, so the next attempt needs a new id. */
export function renewIdentity(hold: Hold): void {
  hold.id = randomUUID();
}

function ticketEnded(key: string): LockLostError {
  return new LockLostError(
    `Lock "${key}": the lock of this ticket has ended. A ticket enters a running lock only; make sure that its holder waits for this call.`,
    key,
    'released',
  );
}
