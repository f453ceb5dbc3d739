import { type Clock, commandLimit, leaseDeadline, type Moment, momentOf, wallDeadline } from '../seam/time.js';
import { LockConfigurationError, LockLostError, LockStoreError } from '../words/errors.js';
import { shown } from '../words/shown.js';
import type { Lease } from './lease.js';
import type { AcquireReply, Busy, HoldRecord, LockStore, Place, Tickets, Turns } from '../seam/lock-store.js';

/**
 * How one attempt ended. `late`: the grant came after its own deadline and does not count. `failed`: its error says
 * whether the attempt may have been carried out. `unsent`: the call's time was over before.
 */
export type AttemptResult =
  | { readonly outcome: 'granted'; readonly fence: number; readonly sent: Moment }
  | { readonly outcome: 'late' }
  | { readonly outcome: 'busy'; readonly busy: Busy }
  | { readonly outcome: 'failed' | 'unsent'; readonly error: LockStoreError };

/**
 * Sends one acquire at `sent`, or one join for a lease by a ticket, to be answered by `answerBy`. `judged` gets the
 * result; `refused` gets an error that no retry mends.
 */
export function attempt<T>(
  store: LockStore,
  lease: Lease,
  clock: Clock,
  sent: Moment,
  answerBy: number,
  place: Place | undefined,
  judged: (result: AttemptResult) => T,
  refused: (error: unknown) => T,
): Promise<T> {
  const limitMs = Math.min(commandLimit(lease.ttlMs), Math.ceil(answerBy - sent.monotonic));
  if (limitMs <= 0) {
    return Promise.resolve<AttemptResult>({ outcome: 'unsent', error: tooSlow(lease) }).then(judged);
  }
  const record = lease.record(limitMs);
  lease.sent();
  let reply: Promise<AcquireReply>;
  try {
    reply = Promise.resolve(lease.isJoined ? join(store.tickets as Tickets, record) : store.acquire(record, place));
  } catch (error) {
    reply = Promise.reject(error as Error);
  }
  return reply.then(
    // A store of somebody's own may answer anything.
    (answer: AcquireReply | null | undefined) => {
      lease.answered();
      return answer ? judged(judge(answer, sent, store, lease, clock)) : refused(noAnswer(answer, lease));
    },
    (error: unknown) => {
      noteAnswer(lease, error);
      return error instanceof LockStoreError ? judged({ outcome: 'failed', error }) : refused(error);
    },
  );
}

/** Releases a hold, and sends the acquire of the next caller of this process in the same command. */
export function exchange(
  store: LockStore,
  hold: HoldRecord,
  lease: Lease,
  place: Place,
  mayOvertake: boolean,
  clock: Clock,
): { released: Promise<boolean>; attempt: Promise<AttemptResult> } {
  const sent = momentOf(clock);
  const turns = store.turns as Turns;
  const record = lease.record();
  lease.sent();
  // In an executor, so that a store which throws at once fails the exchange, and leaves no line waiting.
  const answer = new Promise<Awaited<ReturnType<Turns['exchange']>>>((resolve) =>
    resolve(turns.exchange(hold, record, place, mayOvertake)),
  );
  const reply = answer.then((answered) => answered.reply);
  return {
    released: answer.then(({ released }) => released),
    attempt: reply.then(
      (answered) => {
        lease.answered();
        return judge(answered, sent, store, lease, clock);
      },
      (error: unknown) => {
        noteAnswer(lease, error);
        return failed(error);
      },
    ),
  };
}

/** Sends one release. Never throws. */
export function sendRelease(store: LockStore, record: HoldRecord): Promise<boolean> {
  try {
    return store.release(record);
  } catch (error) {
    return Promise.reject(error as Error);
  }
}

/** Judges the reply to a lease that was asked for at `sent`. */
function judge(reply: AcquireReply, sent: Moment, store: LockStore, lease: Lease, clock: Clock): AttemptResult {
  if (reply.fence === undefined) {
    return { outcome: 'busy', busy: reply };
  }
  return store.expires && isOver(sent, lease.ttlMs, clock) ? { outcome: 'late' } : { outcome: 'granted', fence: reply.fence, sent };
}

/**
 * Notes whether an error is an answer of the store. A store error whose outcome is known is an answer, and so is the
 * refusal of a ticket. After any other error the attempt counts as unanswered: it may still arrive.
 */
function noteAnswer(lease: Lease, error: unknown): void {
  if (error instanceof LockStoreError ? !error.unknown : error instanceof LockLostError) {
    lease.answered();
  }
}

/** The result of an attempt that the store failed; throws an error that no retry mends. */
export function failed(error: unknown): AttemptResult {
  if (error instanceof LockStoreError) {
    return { outcome: 'failed', error };
  }
  throw error;
}

/**
 * Whether a lease that was asked for at `sent` has ended, by either clock: the machine may have slept before the reply.
 */
function isOver(sent: Moment, ttlMs: number, clock: Clock): boolean {
  const deadline = leaseDeadline(sent.monotonic, ttlMs);
  return clock.monotonic() >= deadline || clock.wall() >= wallDeadline(deadline, sent.wall - sent.monotonic);
}

async function join(tickets: Tickets, record: HoldRecord): Promise<AcquireReply> {
  if (!(await tickets.join(record))) {
    throw new LockLostError(
      `Lock "${record.key}": the lock of this ticket has ended. A ticket enters a running lock only; make sure that its holder waits for this call.`,
      record.key,
      'released',
    );
  }
  return record;
}

function noAnswer(answer: unknown, { key }: Lease): LockConfigurationError {
  return new LockConfigurationError(
    `Lock "${key}": the store answered an acquire with ${shown(answer)}. It has to answer { fence }, or who holds the lock; see docs/writing-a-store.md.`,
    key,
  );
}

/** The store took so long for the keys before that nothing is left of the call's time. */
function tooSlow({ key }: Lease): LockStoreError {
  return new LockStoreError(
    `Lock "${key}" was not asked for: the store took too long to answer for the keys before it. Raise wait, or find out what is slow.`,
    key,
    { unknown: false },
  );
}
