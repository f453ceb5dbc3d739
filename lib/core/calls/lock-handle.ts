import { inspect } from 'node:util';
import type { Lock } from '../words/lock.js';

/** What a handle needs of the call that it stands for. */
export interface HandledCall extends Omit<Lock, 'release' | typeof Symbol.asyncDispose> {
  readonly shown: object;
  release(isExplicit: boolean): Promise<void>;
}

/** The lock that user code gets. Nothing of the library's own state can be reached from it. */
export class LockHandle implements Lock {
  readonly #call: HandledCall;

  constructor(call: HandledCall) {
    this.#call = call;
  }

  get keys(): readonly string[] {
    return this.#call.keys;
  }

  get fence(): number {
    return this.#call.fence;
  }

  get signal(): AbortSignal {
    return this.#call.signal;
  }

  get waitedMs(): number {
    return this.#call.waitedMs;
  }

  fenceOf(key: string): number {
    return this.#call.fenceOf(key);
  }

  makeTicket(): string {
    return this.#call.makeTicket();
  }

  isHeld(): boolean {
    return this.#call.isHeld();
  }

  assertHeld(): void {
    this.#call.assertHeld();
  }

  remainingMs(): number {
    return this.#call.remainingMs();
  }

  run<T>(fn: () => PromiseLike<T>): Promise<T>;
  run<T>(fn: () => T): T;
  run<T>(fn: () => T): T {
    return this.#call.run(fn);
  }

  release(): Promise<void> {
    return this.#call.release(true);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#call.release(false);
  }

  /** What a log shows of it: locks get logged, or whatever refers to them. */
  toJSON(): object {
    return this.#call.shown;
  }

  [inspect.custom](): object {
    return this.#call.shown;
  }
}
