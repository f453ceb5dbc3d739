import type { LockError, LockLostError } from '../../../lib/core/errors.js';
import type { Lock } from '../../../lib/core/lock.js';
import type { Process } from './process.js';
import type { Call, Step } from './scenario.js';
import type { World } from './world.js';

/** One locked call of a run: makes it, runs the steps of its body, and checks what it saw and how it ended. */
export class LockedCall {
  /** Its name, by which the store's records and the library's events are known as this call's. */
  readonly by: string;
  readonly startedAt: number;
  /** Per key, the call that acquired what this one is inside of. */
  readonly roots = new Map<string, LockedCall>();
  lock: Lock | undefined;
  signal: AbortSignal | undefined;
  /** Its handle was given back while code inside it ran. */
  isReleased = false;
  /** When it ended, or the last call inside of it that outlived it. */
  endedAt = Infinity;
  readonly #world: World;
  #enteredAt: number | undefined;
  /** The same by the clock of the process, whose listeners may have worked before its code began. */
  #beganAt: number | undefined;
  #leftAt: number | undefined;
  #hasReturned = false;
  #heldToTheEnd = false;
  #aborter: AbortController | undefined;
  #running: Promise<void> = Promise.resolve();

  constructor(
    readonly process: Process,
    readonly call: Call,
    readonly parent: LockedCall | undefined,
  ) {
    this.#world = process.world;
    this.startedAt = this.#world.now;
    this.by = this.#world.name(this);
  }

  /** The longest ttl that it, or a call inside it, asks for. */
  get longestTtlMs(): number {
    return longestTtl(this.call);
  }

  /** When its lease has to be over at the latest: from `maxHold` on it is not renewed any more. By the clock of the process. */
  get mustEndAt(): number {
    const { maxHold } = this.call;
    return maxHold === undefined || this.#beganAt === undefined ? Infinity : this.#beganAt + maxHold + this.longestTtlMs;
  }

  get isInside(): boolean {
    return this.#enteredAt !== undefined && this.#leftAt === undefined;
  }

  /** Whether it waits for that key only, which nobody before it in its process has. */
  isWaitingFor(key: string): boolean {
    const { keys, wait, how, joins } = this.call;
    const waits = this.#enteredAt === undefined && !this.#hasReturned && !joins && how !== 'tryAcquire' && wait > 0;
    return waits && keys.length === 1 && keys[0] === key;
  }

  /** Whether it was aborted before it had the lock, and goes on all the same. */
  get ignoresAbort(): boolean {
    return this.#enteredAt === undefined && this.#aborter?.signal.aborted === true;
  }

  isInsideOf(other: LockedCall): boolean {
    return this.#ancestors().includes(other);
  }

  /** Never rejects: what goes wrong with the library is a failure of the run. */
  async run(): Promise<void> {
    const { call, process } = this;
    this.#world.begins(this);
    this.#world.note(() => `${process.id}: ${this.by} begins inside ${this.parent?.by}: ${JSON.stringify({ ...call, steps: undefined })}`);
    let error: LockError | undefined;
    try {
      await this.#enter();
    } catch (thrown) {
      error = thrown as LockError;
    }
    this.#hasReturned = true;
    this.#world.note(() => `${process.id}: ${this.by} ends: ${error?.detail ?? 'returned'}`);
    this.#checkEnd(error);
    if ((error as LockLostError | undefined)?.bodyRuns) {
      // The caller waits no longer; what the body is inside of stays locked until it ends, and is then released.
      const end = (): void => void process.sleep(this.#world.commandLimitMs + 50).then(() => this.#end());
      void this.#running.then(end, end);
    } else {
      this.#end();
    }
  }

  #end(): void {
    this.endedAt = this.#world.now;
    this.#world.ends(this);
    // Whom it was inside of may have ended before, and left the lock to it.
    for (const outer of this.#ancestors().filter(({ endedAt }) => endedAt < Infinity)) {
      outer.endedAt = this.endedAt;
    }
  }

  async #enter(): Promise<void> {
    const { call, process, by } = this;
    const { ttl, wait, renew, reentry, maxHold } = call;
    const minHold = Math.min(call.minHold, maxHold ?? Infinity);
    const ticket = call.joins ? this.#world.ticketFor(call.keys) : undefined;
    const signal = this.#abortion();
    const options = { ttl, renew, reentry, maxHold, minHold, by, signal, ticket };
    if (call.how === 'withLock') {
      return process.service.withLock(call.keys, { ...options, wait }, (lock) => (this.#running = this.#body(lock)));
    }
    const lock =
      call.how === 'acquire'
        ? await process.service.acquire(call.keys, { ...options, wait })
        : await process.service.tryAcquire(call.keys, options);
    if (!lock) {
      return;
    }
    this.lock = lock;
    try {
      await lock.run(() => this.#body(lock));
    } finally {
      await lock.release();
    }
  }

  #abortion(): AbortSignal | undefined {
    if (this.call.abortAfterMs === undefined) {
      return undefined;
    }
    const aborter = (this.#aborter = new AbortController());
    void this.process.sleep(this.call.abortAfterMs).then(() => aborter.abort());
    return aborter.signal;
  }

  async #body(lock: Lock): Promise<void> {
    this.lock = lock;
    this.signal = lock.signal;
    lock.signal.addEventListener('abort', () => this.process.work(this.call.listenerMs), { once: true });
    this.#checkEntry(lock);
    this.#enteredAt = this.#world.now;
    this.#beganAt = this.process.clock.monotonic();
    this.#world.note(() => `${this.process.id}: ${this.by} is inside ${lock.keys.map((key) => `${key} at ${lock.fenceOf(key)}`).join()}`);
    this.#world.inside.add(this);
    for (const step of this.call.steps) {
      await this.#step(step, lock);
    }
    this.#heldToTheEnd = lock.isHeld() || isDoubted(lock);
    this.#leftAt = this.#world.now;
    this.#world.inside.delete(this);
  }

  async #step(step: Step, lock: Lock): Promise<void> {
    if (step.do === 'sleep') {
      await this.process.sleep(step.ms);
    } else if (step.do === 'call') {
      const calls = step.calls.map((call) => new LockedCall(this.process, call, this).run());
      await (step.awaited ? Promise.all(calls) : undefined);
    } else if (this.call.how !== 'withLock') {
      this.isReleased = true;
      await lock.release();
    }
  }

  #checkEntry(lock: Lock): void {
    if (this.#enteredAt !== undefined) {
      this.#fail('ran twice');
    }
    if (!lock.isHeld()) {
      this.#fail('runs without its lease');
    }
    for (const key of this.call.keys) {
      this.#checkFence(key, lock.fenceOf(key));
      const root = this.roots.get(key);
      for (const other of this.#world.inside) {
        if (other.process === this.process && !other.isReleased && other.roots.get(key) === root && !this.isInsideOf(other)) {
          this.#fail(`runs beside ${other.by}, inside one lock on "${key}"`);
        }
      }
    }
  }

  /** A re-entry has the fence of the call that it is inside of; everybody else one that nobody had before. */
  #checkFence(key: string, fence: number): void {
    const { leases } = this.#world;
    const enclosing = this.#ancestors().filter(({ call, lock }) => lock && call.keys.includes(key));
    const obtained = leases.find(this.by, key, fence) !== undefined;
    const holder = obtained ? undefined : enclosing.find(({ lock }) => lock?.fenceOf(key) === fence);
    const isNew = this.#world.isNewFence(key, fence);
    this.roots.set(key, holder?.roots.get(key) ?? this);
    if (this.call.joins) {
      return;
    }
    if (holder ? this.call.reentry === 'never' || (holder.#leftAt ?? Infinity) < this.startedAt : !isNew) {
      this.#fail(`has fence ${fence} of "${key}", which is another call's`);
    }
    const nearest = enclosing.find(({ isInside }) => isInside);
    if (!holder && this.call.reentry === 'context' && nearest && (nearest.#enteredAt ?? Infinity) <= this.startedAt) {
      this.#fail(`acquired "${key}" again inside ${nearest.by}, which has it`);
    }
  }

  #checkEnd(error: LockError | undefined): void {
    const entered = this.#enteredAt !== undefined;
    const waitedMs = (this.#enteredAt ?? this.#world.now) - this.startedAt;
    const isLost = this.call.keys.some((key) => this.#world.leases.of(this, key)?.lost);
    this.#checkWait(waitedMs);
    if (error === undefined) {
      if (!entered && this.call.how !== 'tryAcquire') {
        this.#fail('returned without having run');
      }
      // Of a handle, only its signal tells of a loss.
      if (this.call.how === 'withLock' && (isLost || !this.#heldToTheEnd)) {
        this.#fail('returned, though its lease was over');
      }
      return;
    }
    switch (error.code) {
      case 'LOCK_NOT_ACQUIRED':
        this.#checkRefusal(error.key, (error as LockError & { reason: string }).reason);
        break;
      case 'LOCK_STORE':
        if (this.#world.faults.count === 0) {
          this.#fail('failed with its store, which always answered');
        }
        break;
      case 'LOCK_LOST':
        if (entered && (error as LockLostError).bodyRuns !== this.isInside) {
          this.#fail(`ended with bodyRuns: ${String((error as LockLostError).bodyRuns)}, which is wrong`);
        }
        if (entered ? !isLost && this.#heldToTheEnd : !this.#mayBeLost()) {
          this.#fail('was lost without a loss');
        }
        return;
      default:
        this.#fail(`ended with ${error.name}: ${error.detail}`);
    }
    if (entered) {
      this.#fail(`ran, and then ended with ${error.name}: ${error.detail}`);
    }
  }

  /** Before it ran: with a call that it is inside of, or since something took its time between its grant and its code. */
  #mayBeLost(): boolean {
    const enclosing = this.#ancestors().filter((call) => (call.#leftAt ?? Infinity) >= this.startedAt);
    const { now, workingUntil, clock } = this.process;
    const stoodStill = workingUntil > this.startedAt || clock.sleptBefore(now) > clock.sleptBefore(this.startedAt);
    // What it is inside of may have been in doubt when it got its last key, and not be so any more.
    const wasDoubted = enclosing.length > 0 && this.call.keys.length > 1 && clock.isAhead;
    return this.call.joins || stoodStill || wasDoubted || enclosing.some(({ isReleased, lock }) => isReleased || !lock?.isHeld());
  }

  #checkRefusal(key: string, reason: string): void {
    if (reason === 'aborted' && !this.#aborter?.signal.aborted) {
      this.#fail('was aborted by nobody');
    }
    if (reason !== 'busy' || this.call.wait === 0 || this.call.how === 'tryAcquire') {
      return;
    }
    const idleMs = this.#world.server.idleMs(key, Math.max(this.startedAt, this.process.soundSince));
    if (idleMs !== undefined) {
      this.#fail(`gave up, though "${key}" was free for ${idleMs.toFixed(1)} ms`);
    }
  }

  #checkWait(waitedMs: number): void {
    const { call, process } = this;
    const waitMs = call.how === 'tryAcquire' ? 0 : call.wait;
    const attempts = 2 * call.keys.length + 2;
    const attemptsMs = attempts * Math.max(this.#world.commandLimitMs, 50);
    // What it has already may be in doubt then, and is left once the store has answered, or a command's time is over.
    const doubtMs = call.keys.length > 1 && process.clock.isAhead ? Math.min(call.ttl / 4, 1_000) + 50 : 0;
    if (process.pausedMs === 0 && waitedMs > waitMs * 1.01 + Math.max(attemptsMs, doubtMs)) {
      this.#fail(`waited for ${waitedMs} ms`);
    }
  }

  #ancestors(): LockedCall[] {
    return this.parent ? [this.parent, ...this.parent.#ancestors()] : [];
  }

  #fail(what: string): void {
    this.#world.fail(`${this.by} ${what}.`);
  }
}

/** Whether the lease is only not to be trusted at this moment: the wall clock went past its end. */
function isDoubted(lock: Lock): boolean {
  try {
    lock.assertHeld();
    return false;
  } catch (error) {
    return (error as LockError).detail.includes('cannot be trusted at this moment');
  }
}

function longestTtl({ ttl, steps }: Call): number {
  const inner = steps.flatMap((step) => (step.do === 'call' ? step.calls.map(longestTtl) : []));
  return Math.max(ttl, ...inner);
}
