import { inspect } from 'node:util';
import { runInside } from '../calls/call-tree.js';
import { onceOnly } from '../calls/run-once.js';
import { writeTicket } from '../leases/ticket.js';
import type { Duration } from '../words/duration.js';
import { LockConfigurationError } from '../words/errors.js';
import type { Lock } from '../words/lock.js';
import { printable, quoted } from '../words/shown.js';
import type { Frame } from './frame.js';

/** The lock that user code gets. Nothing of the library's own state can be reached from it. */
export class LockHandle implements Lock {
  readonly #frame: Frame;
  readonly #what: string;
  #hasWarned = false;

  /** `what` it is called in a warning. */
  constructor(frame: Frame, what = 'Lock') {
    this.#frame = frame;
    this.#what = what;
  }

  get keys(): readonly string[] {
    return this.#frame.keys;
  }

  get fence(): number {
    const { keys } = this.#frame;
    if (keys.length > 1) {
      throw new LockConfigurationError(
        `The lock on ${quoted(keys)} has one fence per key. Use lock.fenceOf(key) with the key of the resource.`,
        keys[0],
      );
    }
    return this.fenceOf(keys[0] as string);
  }

  fenceOf(key: string): number {
    const lease = this.#frame.leaseOn(key);
    if (!lease) {
      throw new LockConfigurationError(
        `Key "${key}" is not part of this lock, which is on ${quoted(this.keys)}. Pass one of its keys.`,
        key,
      );
    }
    return lease.fence;
  }

  get signal(): AbortSignal {
    return this.#frame.signal;
  }

  get waitedMs(): number {
    return this.#frame.waitedMs;
  }

  /** Throws where its locks were lost or released: the lease may serve another call by now. */
  makeTicket(): string {
    this.#frame.assertInside();
    return writeTicket(this.#frame.makeTicketEntries());
  }

  isHeld(): boolean {
    return this.#frame.isHeld();
  }

  assertHeld(): void {
    this.#frame.assertHeld();
  }

  remainingMs(): number {
    return this.isHeld() ? Math.min(...this.#frame.taken.map((lease) => lease.remainingMs)) : 0;
  }

  extend(ttl: Duration): Promise<void> {
    return this.#frame.extend(ttl);
  }

  run<T>(fn: () => PromiseLike<T>): Promise<T>;
  run<T>(fn: () => T): T;
  run<T>(fn: () => T | PromiseLike<T>): T | Promise<T> {
    const frame = this.#frame;
    return runInside(frame, () => frame.resume(() => onceOnly(fn())));
  }

  release(): Promise<void> {
    if (this.#frame.isReleased && !this.#hasWarned) {
      this.#hasWarned = true;
      process.emitWarning(
        printable(
          `${this.#what} ${quoted(this.keys)} was released twice; the second release did nothing. Release it in one place, or use 'await using'.`,
        ),
        'LockWarning',
      );
    }
    return this[Symbol.asyncDispose]();
  }

  [Symbol.asyncDispose](): Promise<void> {
    if (!this.#frame.isReleased) {
      // A handle has no body at whose end the clock could say so, and the store may not answer the release.
      this.#frame.expire();
    }
    return this.#frame.leave() ?? Promise.resolve();
  }

  /** The fields that a log shows of it: locks get logged, or whatever refers to them. */
  toJSON(): object {
    return { keys: this.keys, fences: this.#frame.taken.map((lease) => lease.fence), isHeld: this.isHeld() };
  }

  [inspect.custom](): object {
    return this.toJSON();
  }
}
