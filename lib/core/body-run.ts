import { callContext } from './call-tree.js';
import type { LockLostError } from './errors.js';
import type { Frame, LossListener } from './frame.js';
import type { Leases } from './leases.js';
import type { Lock } from './lock.js';
import { stillRunning } from './loss.js';
import { runOnce } from './run-once.js';

/** How long a caller waits at least for a body that was notified of a loss, in milliseconds. */
const LEAST_GRACE_MS = 1_000;

/** One run of a body inside its locks, and its caller's wait for it. */
export class BodyRun implements LossListener {
  readonly #frame: Frame;
  readonly #leases: Leases;
  /** Rejects the caller who waits for the body; undefined once the body has ended. */
  #giveUp: ((loss: LockLostError) => void) | undefined;
  #grace: NodeJS.Timeout | undefined;
  #gaveUp = false;
  #notified: LockLostError | undefined;

  constructor(frame: Frame, leases: Leases) {
    this.#frame = frame;
    this.#leases = leases;
  }

  /**
   * Runs the body and leaves. Rejects with `LockLostError` if the lease ended before the body did; the body's own error
   * goes first. A body that goes on for a `ttl` after its signal aborted, and a second at least, is not waited for any
   * longer: the call rejects, and the body keeps what else it holds until it ends.
   */
  run<T>(body: (lock: Lock) => T | PromiseLike<T>): Promise<T> {
    let end!: (result: T) => void;
    let giveUp!: (error: Error) => void;
    const result = new Promise<T>((resolve, reject) => {
      end = resolve;
      giveUp = reject;
    });
    this.#giveUp = giveUp;
    this.#frame.runsBody(this);
    this.#toTheEnd(body).then(end, giveUp);
    return result;
  }

  async #toTheEnd<T>(body: (lock: Lock) => T | PromiseLike<T>): Promise<T> {
    const frame = this.#frame;
    let result: T;
    try {
      frame.begin();
      try {
        result = await callContext.run(frame, runOnce<Lock, T>, body, frame.lock);
      } finally {
        frame.end();
      }
      // Where the event loop was blocked, no timer could notice a loss.
      frame.expire();
      this.#bodyEnded(undefined);
    } catch (error) {
      this.#bodyEnded(error);
      throw error;
    } finally {
      await frame.leave();
    }
    const { loss } = frame;
    if (loss) {
      throw loss;
    }
    return result;
  }

  /** Limits the time that the caller waits for the body. */
  notified(loss: LockLostError): void {
    this.#notified = loss;
    if (!this.#giveUp) {
      return;
    }
    const graceMs = Math.max(LEAST_GRACE_MS, ...this.#frame.taken.map((lease) => lease.ttlMs));
    const stopWaiting = (): void => {
      this.#gaveUp = true;
      this.#giveUp?.(stillRunning(this.#frame.expire() ?? loss, graceMs));
    };
    // Outside of any call, as the loss may be noticed in another one.
    this.#grace = callContext.run(undefined, () => setTimeout(stopWaiting, graceMs).unref());
  }

  #bodyEnded(thrown: unknown): void {
    clearTimeout(this.#grace);
    this.#giveUp = undefined;
    const lost = this.#gaveUp ? this.#frame.taken.find((lease) => lease.loss) : undefined;
    if (lost) {
      this.#leases.endedLate(lost, thrown === lost.loss || thrown === this.#notified ? undefined : thrown);
    }
  }
}
