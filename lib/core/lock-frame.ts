import { inspect } from 'node:util';
import { liveParent, runInFrame, skipLeft } from './context.js';
import { LockConfigurationError, LockLostError } from './errors.js';
import type { Hold } from './hold.js';
import type { Lock } from './lock.js';
import { stillRunning } from './loss.js';
import { printable } from './printable.js';
import { settleOnce } from './settle-once.js';
import { writeTicket } from './ticket.js';

/** How long a caller waits at least for a body that was told to end, in milliseconds. */
const LEAST_GRACE_MS = 1_000;

/**
 * One locked call: the lock that its body sees, and its place in the tree of calls. Its parent is the nearest enclosing
 * call that had not left when it was made.
 */
export class LockFrame implements Lock {
  readonly keys: readonly string[];
  /** Whether it was made by `acquire()`, which cannot mark the caller's later code. */
  readonly isHandle: boolean;
  parent: LockFrame | undefined;
  /** One hold per key that was taken so far, in the order of the keys. */
  readonly holds: Hold[] = [];
  /** How long the call waited until it had all its locks, in milliseconds. */
  #waitedMs = 0;
  #handle: WeakRef<Lock> | undefined;
  #released = false;
  #running = 0;
  #warned = false;
  #leaving: Promise<void> | undefined;
  #controller: AbortController | undefined;
  #told: LockLostError | undefined;
  /** Rejects the caller who waits for the body; undefined where nobody does. */
  #giveUp: ((loss: LockLostError) => void) | undefined;
  #grace: NodeJS.Timeout | undefined;
  #gaveUp = false;

  constructor(keys: readonly string[], parent: LockFrame | undefined, isHandle: boolean) {
    this.keys = keys;
    this.isHandle = isHandle;
    this.parent = parent;
    if (parent) {
      liveParent(parent);
    }
  }

  /** A released frame counts as left once its body has ended. */
  get hasLeft(): boolean {
    return this.#released && this.#running === 0;
  }

  get fence(): number {
    if (this.keys.length > 1) {
      throw new LockConfigurationError(
        `The lock on ${this.#names()} has one fence per key. Use lock.fenceOf(key) with the key of the resource.`,
        this.keys[0],
      );
    }
    return (this.holds[0] as Hold).fence;
  }

  fenceOf(key: string): number {
    const hold = this.holdOf(key);
    if (!hold) {
      throw new LockConfigurationError(`Key "${key}" is not part of this lock, which is on ${this.#names()}. Pass one of its keys.`, key);
    }
    return hold.fence;
  }

  holdOf(key: string): Hold | undefined {
    return this.holds.find((hold) => hold.key === key);
  }

  get waitedMs(): number {
    return this.#waitedMs;
  }

  /** The call has all its locks. */
  entered(waitedMs: number): void {
    this.#waitedMs = Math.round(waitedMs);
  }

  /** What its caller knows this lock by, where that is still in use. */
  get asGiven(): Lock {
    return this.#handle?.deref() ?? this;
  }

  isGivenAs(handle: Lock): void {
    this.#handle = new WeakRef(handle);
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    const loss = this.#told ?? this.#leaseLoss();
    if (loss) {
      this.#controller.abort(loss);
    }
    return this.#controller.signal;
  }

  get ticket(): string {
    for (const hold of this.holds) {
      hold.shared = true;
    }
    return writeTicket(this.holds);
  }

  isHeld(): boolean {
    return !this.#released && this.holds.every((hold) => hold.isLive());
  }

  assertHeld(): void {
    const loss = this.loss() ?? this.doubt();
    if (loss) {
      throw loss;
    }
  }

  remainingMs(): number {
    if (!this.isHeld()) {
      return 0;
    }
    return Math.min(...this.holds.map((hold) => hold.remainingMs()));
  }

  /** Why the lock is not held any more; undefined while it is. */
  loss(): LockLostError | undefined {
    const loss = this.#leaseLoss();
    if (loss || !this.#released) {
      return loss;
    }
    return new LockLostError(
      `Lock ${this.#names()} was released before. Acquire it again, or release it after the last use.`,
      this.keys[0] ?? '',
      'released',
    );
  }

  /** Why the lock cannot be trusted now, though it is not lost. */
  doubt(): LockLostError | undefined {
    for (const hold of this.holds) {
      const doubt = hold.doubt();
      if (doubt) {
        return doubt;
      }
    }
    return undefined;
  }

  run<T>(fn: () => PromiseLike<T>): Promise<T>;
  run<T>(fn: () => T): T;
  run<T>(fn: () => T | PromiseLike<T>): T | Promise<T> {
    this.assertHeld();
    this.#running++;
    let result: T | Promise<T>;
    try {
      result = runInFrame(this, () => settleOnce(fn()));
    } catch (error) {
      this.#running--;
      throw error;
    }
    if (result instanceof Promise) {
      const ended = (): void => {
        this.#running--;
      };
      result.then(ended, ended);
    } else {
      this.#running--;
    }
    return result;
  }

  /** Tells the code, once, that the lease is lost or about to be. */
  tell(loss: LockLostError): void {
    if (!this.#told) {
      this.#told = loss;
      // Listeners belong to this call: a timer that tells of the loss may run in another call's context.
      runInFrame(this, () => this.#controller?.abort(loss));
      if (this.#giveUp) {
        this.#limitBody();
      }
    }
  }

  /** Nobody has seen the lock yet, and its locks are taken anew: what was lost before is forgotten. */
  startOver(): void {
    this.#told = undefined;
    this.#controller = undefined;
  }

  /**
   * Runs the body and leaves. Rejects with `LockLostError` if the lease ended before the body did; the body's own error goes
   * first. A body that goes on for a `ttl` after its signal aborted, and a second at least, is not waited for any longer: the
   * call rejects, and the body keeps what else it holds until it ends.
   */
  runAndLeave<T>(body: (lock: Lock) => T | PromiseLike<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#giveUp = reject;
      this.#runToTheEnd(body).then(resolve, reject);
    });
  }

  async #runToTheEnd<T>(body: (lock: Lock) => T | PromiseLike<T>): Promise<T> {
    let result: T;
    try {
      result = await this.run(() => body(this));
      // Lets the clock tell of a loss that no timer could, after a blocked event loop.
      this.loss();
      this.#bodyEnded(undefined);
    } catch (error) {
      this.#bodyEnded(error);
      throw error;
    } finally {
      await this.leave();
    }
    const loss = this.lostLease();
    if (loss) {
      throw loss;
    }
    return result;
  }

  /** Gives the body, which was told to end, its last moments. */
  #limitBody(): void {
    const graceMs = Math.max(LEAST_GRACE_MS, ...this.holds.map((hold) => hold.ttlMs));
    const stopWaiting = (): void => {
      this.#gaveUp = true;
      this.#giveUp?.(stillRunning(this.#leaseLoss() ?? (this.#told as LockLostError), graceMs));
    };
    // Outside of any call, as whoever noticed the loss may run in another one.
    this.#grace = runInFrame(undefined, () => setTimeout(stopWaiting, graceMs).unref());
  }

  #bodyEnded(thrown: unknown): void {
    clearTimeout(this.#grace);
    this.#giveUp = undefined;
    const hold = this.#gaveUp ? this.holds.find(({ lost }) => lost) : undefined;
    hold?.keeper.endedLate(hold, thrown === hold.lost || thrown === this.#told ? undefined : thrown);
  }

  /** Leaves every lock it is in, last taken first. A second call waits for the first. */
  leave(): Promise<void> {
    // Outside of any call: Node keeps with a promise the context in which it was made, so that each frame would keep the one before.
    return (this.#leaving ??= runInFrame(undefined, () => this.#leaveAll()));
  }

  async #leaveAll(): Promise<void> {
    this.#released = true;
    this.parent = skipLeft(this.parent);
    for (const hold of this.holds) {
      // The code may have run past its lease while the machine slept: the store has to say.
      if (hold.doubt()) {
        await hold.keeper.settleDoubt(hold);
      }
    }
    if (this.holds.length === 1) {
      await (this.holds[0] as Hold).leave(this);
    } else {
      await Promise.all(this.holds.toReversed().map((hold) => hold.leave(this)));
    }
    // The release itself may have found that the lock was gone.
    const loss = this.lostLease();
    if (loss) {
      this.tell(loss);
    }
  }

  /** The loss of a lease, where one is known; after `leave()` that includes a lock that the release found gone. */
  lostLease(): LockLostError | undefined {
    return this.holds.find((hold) => hold.lost)?.lost;
  }

  async release(): Promise<void> {
    if (this.#released && !this.#warned) {
      this.#warned = true;
      process.emitWarning(
        printable(
          `Lock ${this.#names()} was released twice; the second release did nothing. Release it in one place, or use 'await using'.`,
        ),
        'LockWarning',
      );
    }
    return this[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#released) {
      // A handle has no body at whose end the clock could tell, and the store may not answer the release.
      this.#leaseLoss();
    }
    return this.leave();
  }

  /** What a log shows of it: owners are capabilities, and a lock gets logged, or whatever refers to it. */
  toJSON(): { keys: readonly string[]; fences: readonly number[]; isHeld: boolean } {
    return { keys: this.keys, fences: this.holds.map((hold) => hold.fence), isHeld: this.isHeld() };
  }

  [inspect.custom](): object {
    return this.toJSON();
  }

  #leaseLoss(): LockLostError | undefined {
    for (const hold of this.holds) {
      const loss = hold.loss();
      if (loss) {
        return loss;
      }
    }
    return undefined;
  }

  #names(): string {
    return this.keys.map((key) => `"${key}"`).join(', ');
  }
}
