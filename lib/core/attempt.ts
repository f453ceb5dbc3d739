import { randomUUID } from 'node:crypto';
import type { Clock } from './clock.js';
import { LockLostError, LockStoreError } from './errors.js';
import type { Hold } from './hold.js';
import { leaseDeadline } from './lease.js';
import type { AcquireReply, Busy, LockStore, Place, Turns } from './lock-store.js';

/** How one attempt ended. A `late` grant came after its own deadline and is none; `failed` says whether it may have been carried out. */
export type AttemptResult =
  | { readonly outcome: 'granted'; readonly sentAt: number }
  | { readonly outcome: 'late' }
  | { readonly outcome: 'busy'; readonly busy: Busy }
  | { readonly outcome: 'failed'; readonly error: LockStoreError };

/** Sends one acquire, or one join for a hold with a ticket. Rejects with what no retry mends. */
export function attempt(store: LockStore, hold: Hold, clock: Clock, place?: Place): Promise<AttemptResult> {
  const sentAt = clock.monotonic();
  return judge(hold.joined ? join(store, hold) : store.acquire(hold, place), sentAt, store, hold, clock);
}

/** Releases a hold, and sends the acquire of the next caller of this process in the same command. */
export function passOn(
  turns: Turns,
  store: LockStore,
  hold: Hold,
  next: Hold,
  place: Place,
  mayPass: boolean,
  clock: Clock,
): { released: Promise<boolean>; attempt: Promise<AttemptResult> } {
  const sentAt = clock.monotonic();
  const sent = turns.pass(hold, next, place, mayPass);
  const reply = sent.then((answer) => answer.reply);
  return { released: sent.then((answer) => answer.released), attempt: judge(reply, sentAt, store, next, clock) };
}

async function judge(sent: Promise<AcquireReply>, sentAt: number, store: LockStore, hold: Hold, clock: Clock): Promise<AttemptResult> {
  let reply: AcquireReply;
  try {
    reply = await sent;
  } catch (error) {
    if (error instanceof LockStoreError) {
      return { outcome: 'failed', error };
    }
    throw error;
  }
  if (reply.fence === undefined) {
    return { outcome: 'busy', busy: reply };
  }
  if (store.expires && clock.monotonic() >= leaseDeadline(sentAt, hold.ttlMs)) {
    return { outcome: 'late' };
  }
  hold.fence = reply.fence;
  return { outcome: 'granted', sentAt };
}

async function join(store: LockStore, hold: Hold): Promise<AcquireReply> {
  if (!(await store.join(hold))) {
    throw ticketEnded(hold.key);
  }
  return hold;
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
