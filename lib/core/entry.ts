import { randomUUID } from 'node:crypto';
import type { Call } from './call.js';
import type { Clock } from './clock.js';
import type { LockNotAcquiredError, NotAcquiredReason } from './errors.js';
import type { Hold } from './hold.js';
import { commandLimit } from './lease.js';
import type { LockFrame } from './lock-frame.js';
import type { Busy } from './lock-store.js';
import { notAcquired } from './not-acquired.js';
import type { WaitOutcome } from './waiter.js';

/** A call on its way into its lock. */
export class Entry {
  readonly call: Call;
  readonly frame: LockFrame;
  /** Host, process id and, where it is known, `Class.method`. */
  readonly by: string;
  readonly giveUpAt: number;
  /** When the last attempt has to be answered, whichever of the keys it is for. */
  readonly answerBy: number;
  /** What it acquired itself, and did not find held by an enclosing call. */
  readonly obtained: Hold[] = [];
  /** The key that it last had to wait for. */
  waitedFor: string | undefined;
  readonly #clock: Clock;
  readonly #startedAt: number;
  #owner: string | undefined;

  constructor(call: Call, frame: LockFrame, by: string, clock: Clock) {
    this.call = call;
    this.frame = frame;
    this.by = by;
    this.#clock = clock;
    this.#startedAt = clock.monotonic();
    this.giveUpAt = this.#startedAt + call.waitMs;
    this.answerBy = this.giveUpAt + commandLimit(call.ttlMs);
  }

  /** Made when the first key is acquired anew; a re-entry needs none. */
  get owner(): string {
    return (this.#owner ??= randomUUID());
  }

  get waitedMs(): number {
    return this.#clock.monotonic() - this.#startedAt;
  }

  /** The error of a call that gives up. */
  refused(key: string, why: NotAcquiredReason | WaitOutcome, holder?: Hold | Busy, cycle?: readonly string[]): LockNotAcquiredError {
    const { call, frame, waitedMs } = this;
    const reason = REASONS[why];
    const cause: unknown = reason === 'aborted' ? call.signal?.reason : undefined;
    return notAcquired({ key, reason, frame, waitMs: call.waitMs, waitedMs, holder, cycle, cause });
  }
}

/** What the end of a wait means for the call; an admitted one goes on. */
const REASONS: Readonly<Record<NotAcquiredReason | WaitOutcome, NotAcquiredReason>> = {
  admitted: 'busy',
  timedOut: 'busy',
  closed: 'shutdown',
  busy: 'busy',
  aborted: 'aborted',
  tooManyWaiters: 'tooManyWaiters',
  cycle: 'cycle',
  shutdown: 'shutdown',
};
