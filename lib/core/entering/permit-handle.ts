import { inspect } from 'node:util';
import { LockLostError } from '../words/errors.js';
import type { Permit } from '../words/lock.js';
import type { Frame } from './frame.js';
import { LockHandle } from './lock-handle.js';

/** The permit that user code gets: what a lock has, without fence and ticket. */
export class PermitHandle implements Permit {
  readonly #handle: LockHandle;

  constructor(frame: Frame) {
    this.#handle = new LockHandle(frame, 'Permit');
  }

  get key(): string {
    return this.#handle.keys[0] as string;
  }

  get signal(): AbortSignal {
    return this.#handle.signal;
  }

  isHeld(): boolean {
    return this.#handle.isHeld();
  }

  assertHeld(): void {
    this.#handle.assertHeld();
  }

  remainingMs(): number {
    return this.#handle.remainingMs();
  }

  run<T>(fn: () => PromiseLike<T>): Promise<T>;
  run<T>(fn: () => T): T;
  run<T>(fn: () => T): T {
    return this.#handle.run(fn);
  }

  release(): Promise<void> {
    return this.#handle.release();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#handle[Symbol.asyncDispose]();
  }

  /** The fields that a log shows of it. */
  toJSON(): object {
    return { key: this.key, isHeld: this.isHeld() };
  }

  [inspect.custom](): object {
    return this.toJSON();
  }
}

/** The permit of a body that runs without one, since the store is away. */
export class NoPermit implements Permit {
  readonly key: string;
  readonly signal: AbortSignal = new AbortController().signal;

  constructor(key: string) {
    this.key = key;
  }

  isHeld(): boolean {
    return false;
  }

  assertHeld(): void {
    throw new LockLostError(
      `Permit "${this.key}": this call runs without one, since the store is away and it has onUnavailable: 'run'. ` +
        'Leave that out where the limit must hold.',
      this.key,
      'released',
    );
  }

  remainingMs(): number {
    return 0;
  }

  run<T>(fn: () => PromiseLike<T>): Promise<T>;
  run<T>(fn: () => T): T;
  run<T>(fn: () => T): T {
    return fn();
  }

  async release(): Promise<void> {}

  async [Symbol.asyncDispose](): Promise<void> {}
}
