import { inspect } from 'node:util';
import type { LockFrame } from './lock-frame.js';
import type { Lock } from './lock.js';

/**
 * The lock that `acquire()` gives to its caller. The library refers to the frame and never to this, so that a handle which
 * nobody can release any more is seen when it is collected.
 */
export class LockHandle implements Lock {
  readonly #frame: LockFrame;

  constructor(frame: LockFrame) {
    this.#frame = frame;
  }

  get keys(): readonly string[] {
    return this.#frame.keys;
  }

  get fence(): number {
    return this.#frame.fence;
  }

  get signal(): AbortSignal {
    return this.#frame.signal;
  }

  get ticket(): string {
    return this.#frame.ticket;
  }

  get waitedMs(): number {
    return this.#frame.waitedMs;
  }

  fenceOf(key: string): number {
    return this.#frame.fenceOf(key);
  }

  isHeld(): boolean {
    return this.#frame.isHeld();
  }

  assertHeld(): void {
    this.#frame.assertHeld();
  }

  remainingMs(): number {
    return this.#frame.remainingMs();
  }

  run<T>(fn: () => PromiseLike<T>): Promise<T>;
  run<T>(fn: () => T): T;
  run<T>(fn: () => T): T {
    return this.#frame.run(fn);
  }

  release(): Promise<void> {
    return this.#frame.release();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#frame[Symbol.asyncDispose]();
  }

  toJSON(): object {
    return this.#frame.toJSON();
  }

  [inspect.custom](): object {
    return this.#frame.toJSON();
  }
}
