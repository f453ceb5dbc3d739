import type { NotAcquiredReason } from '../words/errors.js';

/**
 * How a wait ended: the waiter was admitted, or why it gives up; `busy` where its time is over. A refusal rejects
 * instead.
 */
export type WaitOutcome = 'admitted' | Extract<NotAcquiredReason, 'busy' | 'aborted' | 'shutdown'>;

/** Where others find a waiter to admit it; it leaves by itself when its wait ends. */
export interface WaitingLine {
  /**
   * Whether its waiters are inside the lock already: `maxWaiters` does not count them, since a refusal would break
   * their section.
   */
  readonly isInside?: boolean;
  add(waiter: Waiter): unknown;
  delete(waiter: Waiter): unknown;
}

/**
 * One caller's wait: ends once, by admission, its time limit, its signal, shutdown or a refusal. Its timer keeps the
 * process alive, since somebody awaits the answer.
 */
export class Waiter {
  readonly outcome: Promise<WaitOutcome>;
  readonly #timer: NodeJS.Timeout;
  readonly #signal: AbortSignal | undefined;
  readonly #onEnd: (waiter: Waiter) => void;
  #resolve!: (outcome: WaitOutcome) => void;
  #reject!: (error: Error) => void;

  constructor(limitMs: number, signal: AbortSignal | undefined, onEnd: (waiter: Waiter) => void) {
    this.outcome = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#onEnd = onEnd;
    this.#signal = signal;
    // Fake timers count whole milliseconds: one that is shorter would end before its time, again and again.
    this.#timer = setTimeout(() => this.end('busy'), Math.ceil(limitMs));
    signal?.addEventListener('abort', this.#abort);
  }

  admit(): void {
    this.end('admitted');
  }

  end(outcome: WaitOutcome): void {
    this.#cleanUp();
    this.#resolve(outcome);
  }

  refuse(error: Error): void {
    this.#cleanUp();
    this.#reject(error);
  }

  readonly #abort = (): void => this.end('aborted');

  #cleanUp(): void {
    clearTimeout(this.#timer);
    this.#signal?.removeEventListener('abort', this.#abort);
    this.#onEnd(this);
  }
}
