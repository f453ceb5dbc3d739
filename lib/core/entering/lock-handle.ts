import { inspect } from 'node:util';
import { runInside, type CallNode } from '../calls/call-tree.js';
import { onceOnly } from '../calls/run-once.js';
import type { Lease } from '../leases/lease.js';
import { writeTicket, type TicketEntry } from '../leases/ticket.js';
import type { Duration } from '../words/duration.js';
import { LockConfigurationError, type LockLostError } from '../words/errors.js';
import type { Lock } from '../words/lock.js';
import type { Resume } from '../words/lock-telemetry.js';
import { printable, quoted } from '../words/shown.js';

/** The part of its call's `Frame` that a handle needs. */
export interface HandledCall extends CallNode {
  readonly taken: readonly Lease[];
  readonly signal: AbortSignal;
  readonly waitedMs: number;
  readonly isReleased: boolean;
  readonly resume: Resume;
  isHeld(): boolean;
  leaseOn(key: string): Lease | undefined;
  assertHeld(): void;
  assertInside(): void;
  extend(ttl: Duration): Promise<void>;
  share(): readonly TicketEntry[];
  begin(): void;
  end(): void;
  expire(): LockLostError | undefined;
  leave(): Promise<void> | undefined;
  giveHandle(): LockHandle;
}

/** The lock that user code gets. Nothing of the library's own state can be reached from it. */
export class LockHandle implements Lock {
  readonly #call: HandledCall;
  #hasWarned = false;

  constructor(call: HandledCall) {
    this.#call = call;
  }

  get keys(): readonly string[] {
    return this.#call.keys;
  }

  get fence(): number {
    const { keys } = this.#call;
    if (keys.length > 1) {
      throw new LockConfigurationError(
        `The lock on ${quoted(keys)} has one fence per key. Use lock.fenceOf(key) with the key of the resource.`,
        keys[0],
      );
    }
    return this.fenceOf(keys[0] as string);
  }

  fenceOf(key: string): number {
    const lease = this.#call.leaseOn(key);
    if (!lease) {
      throw new LockConfigurationError(
        `Key "${key}" is not part of this lock, which is on ${quoted(this.keys)}. Pass one of its keys.`,
        key,
      );
    }
    return lease.fence;
  }

  get signal(): AbortSignal {
    return this.#call.signal;
  }

  get waitedMs(): number {
    return this.#call.waitedMs;
  }

  /** Throws where its locks were lost or released: the lease may serve another call by now. */
  makeTicket(): string {
    this.#call.assertInside();
    return writeTicket(this.#call.share());
  }

  isHeld(): boolean {
    return this.#call.isHeld();
  }

  assertHeld(): void {
    this.#call.assertHeld();
  }

  remainingMs(): number {
    return this.isHeld() ? Math.min(...this.#call.taken.map((lease) => lease.remainingMs)) : 0;
  }

  extend(ttl: Duration): Promise<void> {
    return this.#call.extend(ttl);
  }

  run<T>(fn: () => PromiseLike<T>): Promise<T>;
  run<T>(fn: () => T): T;
  run<T>(fn: () => T | PromiseLike<T>): T | Promise<T> {
    const call = this.#call;
    return runInside(call, () => call.resume(() => onceOnly(fn())));
  }

  release(): Promise<void> {
    if (this.#call.isReleased && !this.#hasWarned) {
      this.#hasWarned = true;
      process.emitWarning(
        printable(
          `Lock ${quoted(this.keys)} was released twice; the second release did nothing. Release it in one place, or use 'await using'.`,
        ),
        'LockWarning',
      );
    }
    return this[Symbol.asyncDispose]();
  }

  [Symbol.asyncDispose](): Promise<void> {
    if (!this.#call.isReleased) {
      // A handle has no body at whose end the clock could say so, and the store may not answer the release.
      this.#call.expire();
    }
    return this.#call.leave() ?? Promise.resolve();
  }

  /** The fields that a log shows of it: locks get logged, or whatever refers to them. */
  toJSON(): object {
    return { keys: this.keys, fences: this.#call.taken.map((lease) => lease.fence), isHeld: this.isHeld() };
  }

  [inspect.custom](): object {
    return this.toJSON();
  }
}

/** Makes handles, and reports those that were collected while their lock was held: no code can release it any more. */
export class Handles {
  readonly #collected: FinalizationRegistry<HandledCall>;

  constructor(onCollected: (call: HandledCall) => void) {
    this.#collected = new FinalizationRegistry((call) => {
      if (!call.isReleased && call.isHeld()) {
        onCollected(call);
      }
    });
  }

  give(call: HandledCall): LockHandle {
    const handle = call.giveHandle();
    this.#collected.register(handle, call);
    return handle;
  }
}
