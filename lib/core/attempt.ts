import { randomUUID } from 'node:crypto';
import type { Clock } from './clock.js';
import { LockLostError, LockStoreError } from './errors.js';
import type { Hold } from './hold.js';
import { commandLimit, leaseDeadline, momentOf, wallDeadline, type Moment } from './lease.js';
import type { AcquireReply, Busy, LockStore, Place, Tickets, Turns } from './lock-store.js';

/** How one attempt ended. A `late` grant came after its own deadline and is none; `failed` says whether it may have been carried out. */
export type AttemptResult =
  | { readonly outcome: 'granted'; readonly sent: Moment }
  | { readonly outcome: 'late' }
  | { readonly outcome: 'busy'; readonly busy: Busy }
  | { readonly outcome: 'failed'; readonly error: LockStoreError; readonly isUnsent?: true };

/** Sends one acquire, or one join for a hold with a ticket, to be answered by `answerBy`. Rejects with what no retry mends. */
export function attempt(store: LockStore, hold: Hold, clock: Clock, answerBy: number, place?: Place): Promise<AttemptResult> {
  const sent = momentOf(clock);
  hold.limitMs = Math.min(commandLimit(hold.ttlMs), Math.ceil(answerBy - sent.monotonic));
  if (hold.limitMs <= 0) {
    return Promise.resolve({ outcome: 'failed', error: tooSlow(hold), isUnsent: true });
  }
  return judge(hold.joined ? join(store, hold) : store.acquire(hold, place), sent, store, hold, clock);
}

/** Releases a hold, and sends the acquire of the next caller of this process in the same command. */
export function passOn(
  turns: Turns,
  store: LockStore,
  hold: Hold,
  next: Hold,
  place: Place,
  mayOvertake: boolean,
  clock: Clock,
): { released: Promise<boolean>; attempt: Promise<AttemptResult> } {
  const sent = momentOf(clock);
  const passed = turns.exchange(hold, next, place, mayOvertake);
  const reply = passed.then((answer) => answer.reply);
  return { released: passed.then((answer) => answer.released), attempt: judge(reply, sent, store, next, clock) };
}

async function judge(answer: Promise<AcquireReply>, sent: Moment, store: LockStore, hold: Hold, clock: Clock): Promise<AttemptResult> {
  let reply: AcquireReply;
  try {
    reply = await answer;
  } catch (error) {
    if (error instanceof LockStoreError) {
      return { outcome: 'failed', error };
    }
    throw error;
  }
  if (reply.fence === undefined) {
    return { outcome: 'busy', busy: reply };
  }
  if (store.expires && isOver(sent, hold.ttlMs, clock)) {
    return { outcome: 'late' };
  }
  hold.fence = reply.fence;
  return { outcome: 'granted', sent };
}

/** Whether a lease that was asked for at `sent` has ended, by either clock: the machine may have slept before the reply. */
function isOver(sent: Moment, ttlMs: number, clock: Clock): boolean {
  const deadline = leaseDeadline(sent.monotonic, ttlMs);
  return clock.monotonic() >= deadline || clock.wall() >= wallDeadline(sent, deadline);
}

async function join(store: LockStore, hold: Hold): Promise<AcquireReply> {
  if (!(await (store.tickets as Tickets).join(hold))) {
    throw ticketEnded(hold.key);
  }
  return hold;
}

/** A hold that was given back never comes in again, so the next attempt needs a new id. */
export function renewIdentity(hold: Hold): void {
  hold.id = randomUUID();
}

/** The store took so long for the keys before that nothing is left of the call's time. */
function tooSlow({ key }: Hold): LockStoreError {
  return new LockStoreError(
    `Lock "${key}" was not asked for: the store took too long to answer for the keys before it. Raise wait, or find out what is slow.`,
    key,
    { unknown: false },
  );
}

function ticketEnded(key: string): LockLostError {
  return new LockLostError(
    `Lock "${key}": the lock of this ticket has ended. A ticket enters a running lock only; make sure that its holder waits for this call.`,
    key,
    'released',
  );
}
