import { currentCall } from '../core/calls/call-tree.js';
import type { CallOptions } from '../core/words/call-options.js';
import type { Clock } from '../core/seam/time.js';
import { LONGEST_TIMER_MS } from '../core/words/duration.js';
import { LockLostError, type LockError, type LostReason } from '../core/words/errors.js';
import type { Frame } from '../core/entering/frame.js';
import type { LeaderChange } from '../core/words/lock-event.js';
import type { Lock } from '../core/words/lock.js';
import { onceOnly } from '../core/calls/run-once.js';

/** The code of a leader. */
export type LeaderBody = (lock: Lock) => PromiseLike<unknown>;

/** Runs a body inside the lock on a key. `began` gets the frame of the call, before it asks for the lock. */
export type RunLocked = (
  keys: readonly string[],
  call: CallOptions,
  body: (lock: Lock) => Promise<void>,
  began: (frame: Frame) => void,
) => Promise<void>;

/** The parts that a candidate needs each time that it stands by. */
export interface LeadershipParts {
  readonly key: string;
  /** Its signal is the candidate's signal. */
  readonly call: CallOptions & { readonly signal: AbortSignal };
  readonly body: LeaderBody;
  readonly run: RunLocked;
  readonly clock: Clock;
  readonly report: (change: LeaderChange) => void;
}

/** One time that a candidate stands by, leads, and then leads no more. */
export class Leadership {
  readonly #parts: LeadershipParts;
  #frame: Frame | undefined;
  #lock: Lock | undefined;
  #electedAt = 0;
  #code: Promise<void> | undefined;
  #hasThrown = false;
  #thrown: unknown;
  #refusal: unknown;
  #hasLeft = false;
  /** Resolves when the lock was given up, although its code may still run. */
  readonly left: Promise<void>;

  constructor(parts: LeadershipParts) {
    this.#parts = parts;
    this.left = this.#standBy();
  }

  isHeld(): boolean {
    return this.#lock?.isHeld() ?? false;
  }

  /** Whether the code that asks was called by the leader's. */
  get isAround(): boolean {
    const call = currentCall();
    return call !== undefined && this.#frame !== undefined && (call === this.#frame || call.isInside(this.#frame));
  }

  /** Notifies the code to end. It has the lock until it has ended, or has been waited for long enough. */
  revoke(reason: 'released' | 'shutdown'): void {
    if (this.#lock && !this.#hasLeft) {
      this.#frame?.notify(revoked(this.#parts.key, reason));
    }
  }

  /**
   * Resolves when the lock was given up and the code has ended, with the reason why the candidate leads no more; or
   * with the error of a call that never had the lock.
   */
  async end(): Promise<LockError | LostReason | 'returned' | 'threw'> {
    await this.left;
    await this.#code;
    if (!this.#lock) {
      return this.#refusal as LockError;
    }
    const reason = this.#lostReason ?? (this.#hasThrown ? 'threw' : 'returned');
    const { fence } = this.#lock;
    this.#parts.report({ change: 'ended', fence, ledMs: this.#ledMs, reason, thrown: this.#thrown });
    return reason;
  }

  async #standBy(): Promise<void> {
    const { key, call, run, report } = this.#parts;
    report({ change: 'standby' });
    // Code that only awaits its signal has no timer, nor has every store one.
    const keepsProcess = setInterval(() => undefined, LONGEST_TIMER_MS);
    try {
      await run(
        [key],
        call,
        (lock) => this.#begin(lock),
        (frame) => {
          this.#frame = frame;
        },
      );
    } catch (error) {
      this.#refusal = error;
      const reason = this.#lostReason;
      if (this.#lock && reason && error instanceof LockLostError && error.bodyRuns) {
        report({ change: 'stillRuns', fence: this.#lock.fence, ledMs: this.#ledMs, reason });
        // The code may have been notified only: nobody else gets the lock as long as it is renewed.
        this.#frame?.lose(reason);
      }
    }
    clearInterval(keepsProcess);
    this.#hasLeft = true;
  }

  #begin(lock: Lock): Promise<void> {
    const { call, clock, report } = this.#parts;
    if (call.signal.aborted) {
      return Promise.resolve();
    }
    this.#lock = lock;
    this.#electedAt = clock.monotonic();
    report({ change: 'elected', fence: lock.fence, waitedMs: lock.waitedMs });
    lock.signal.addEventListener('abort', this.#reportRevoked, { once: true });
    this.#code = this.#runCode(lock);
    return this.#code;
  }

  /** An error that the code throws concerns the candidate, and no caller. */
  async #runCode(lock: Lock): Promise<void> {
    try {
      await onceOnly(this.#parts.body(lock));
    } catch (error) {
      this.#hasThrown = true;
      this.#thrown = error;
    }
  }

  /** After the listeners of the code, which are more urgent than those to events. */
  readonly #reportRevoked = async (): Promise<void> => {
    // Not by queueMicrotask, which fake timers hold up.
    await Promise.resolve();
    const reason = this.#lostReason;
    if (this.#lock && reason) {
      this.#parts.report({ change: 'revoked', fence: this.#lock.fence, ledMs: this.#ledMs, reason });
    }
  };

  get #ledMs(): number {
    return this.#parts.clock.monotonic() - this.#electedAt;
  }

  /** Why its code was notified; undefined where it was not. */
  get #lostReason(): LostReason | undefined {
    return this.#lock?.signal.aborted ? (this.#lock.signal.reason as LockLostError).reason : undefined;
  }
}

function revoked(key: string, reason: 'released' | 'shutdown'): LockLostError {
  const why = reason === 'shutdown' ? 'the application shuts down' : 'its candidacy was ended';
  return new LockLostError(
    `The leader of "${key}" is to stop: ${why}. Its lock is released when its code has ended; return soon after lock.signal aborts.`,
    key,
    reason,
  );
}
