/** How a wait ended; `closed` at shutdown. A refusal rejects instead. */
export type WaitOutcome = 'admitted' | 'timedOut' | 'aborted' | 'closed';

/** Where others find a waiter to admit it; it leaves by itself when its wait ends. */
export interface WaitingLine {
  /** Whether who waits here is inside the lock already: no limit on waiters concerns it, since refusing it would break its section. */
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
    this.#timer = setTimeout(() => this.#end('timedOut'), limitMs);
    signal?.addEventListener('abort', this.#abort);
  }

  admit(): void {
    this.#end('admitted');
  }

  close(): void {
    this.#end('closed');
  }

  refuse(error: Error): void {
    this.#cleanUp();
    this.#reject(error);
  }

  readonly #abort = (): void => this.#end('aborted');

  #end(outcome: WaitOutcome): void {
    this.#cleanUp();
    this.#resolve(outcome);
  }

  #cleanUp(): void {
    clearTimeout(this.#timer);
    this.#signal?.removeEventListener('abort', this.#abort);
    this.#onEnd(this);
  }
}
