import type { LockError, LockLostError } from '../../../lib/core/words/errors.js';
import type { Lock } from '../../../lib/core/words/lock.js';
import { featuresOf } from './features.js';
import { generate, observe } from './method-call.js';
import { playStep, type Place } from './play-steps.js';
import type { Process } from './process.js';
import { minHoldOf, type Call, type Step } from './scenario.js';
import type { OpenTransaction } from './transactions.js';
import type { World } from './world.js';

/** How long code is waited for at least that is to stop, in milliseconds. */
const LEAST_GRACE_MS = 1_000;

/** The ticket of a call. */
export interface Ticket {
  readonly keys: readonly string[];
  readonly text: string;
}

/** One locked call of a run: makes it, runs the steps of its body, and checks what it saw and how it ended. */
export class LockedCall {
  /** Its name, by which the store's records and the library's events are known as this call's. */
  readonly by: string;
  readonly startedAt: number;
  /** Per key, the call that acquired what this one is inside of. */
  readonly roots = new Map<string, LockedCall>();
  /**
   * Per key, every call whose lease it may be in: several where a call around it, or of its transaction, came with a
   * ticket.
   */
  readonly possibleRoots = new Map<string, ReadonlySet<LockedCall>>();
  /** The transaction that it belongs to. */
  readonly transaction: OpenTransaction | undefined;
  lock: Lock | undefined;
  signal: AbortSignal | undefined;
  /** Its handle was given back while code inside it ran. */
  isReleased = false;
  /** When it ended, or the last call inside of it that outlived it, or the last transaction that kept its lock. */
  endedAt = Infinity;
  /** The features that it uses. */
  features: number;
  readonly #world: World;
  readonly #place: Place;
  /**
   * Whether it began at the moment at which the transaction around it ended, or the transaction ended as the call
   * began: the call may belong to it or not.
   */
  readonly #isUnsure: boolean;
  /** The transactions of calls inside its lock. */
  readonly #keepers = new Set<OpenTransaction>();
  #enteredAt: number | undefined;
  /** When it entered by the clock of the process, whose listeners may have worked before its code began. */
  #beganAt: number | undefined;
  #leftAt: number | undefined;
  #stopsAt = Infinity;
  #hasTicket = false;
  #hasReturned = false;
  #heldToTheEnd = false;
  #wasUnsubscribed = false;
  #aborter: AbortController | undefined;
  #running: Promise<void> = Promise.resolve();

  /** `by`: the name of a candidate, of which this is one term. */
  constructor(
    readonly process: Process,
    readonly call: Call,
    place: Place,
    by?: string,
  ) {
    this.#world = process.world;
    this.#place = place;
    this.startedAt = this.#world.now;
    this.by = this.#world.name(this, by);
    this.transaction = call.how === 'lead' ? undefined : process.transactions.around(place.part);
    this.#isUnsure = process.transactions.isUnsure(place.part);
    this.transaction?.calls.add(this);
    this.features = this.#features();
  }

  /** The longest ttl that it, a call inside it, or one of its transaction asks for. */
  get longestTtlMs(): number {
    return Math.max(...[this, ...(this.transaction?.calls ?? [])].map(({ call }) => longestTtl(call)));
  }

  /**
   * When its lease has to be over at the latest: from `maxHold` on it is not renewed any more. By the clock of the
   * process.
   */
  get mustEndAt(): number {
    const { maxHold } = this.call;
    return maxHold === undefined || this.#beganAt === undefined ? Infinity : this.#beganAt + maxHold + this.longestTtlMs;
  }

  get isInside(): boolean {
    return this.#enteredAt !== undefined && this.#leftAt === undefined;
  }

  /** Whether it may be in a lock by a ticket. */
  get isGuest(): boolean {
    return this.#hasTicket || this.call.keys.some((key) => this.#place.ticketKeys.includes(key));
  }

  /** Whether a transaction that has not ended keeps its lock; perhaps, where that is unsure. */
  get isKept(): boolean {
    return this.#isUnsure || [...this.#keepers].some(({ hasEnded }) => !hasEnded);
  }

  /** Whether its own transaction has not ended. */
  get isSurelyKept(): boolean {
    return !this.#isUnsure && this.transaction?.hasEnded === false && this.transaction.endedAt > this.#world.now;
  }

  /** Whether it waits for that key only, which nobody before it in its process has. */
  isWaitingFor(key: string): boolean {
    const { keys, wait, how } = this.call;
    const waits = this.#enteredAt === undefined && !this.#hasReturned && !this.isGuest && how !== 'tryAcquire' && wait > 0;
    // A call that has one key of two may be another's of its transaction, which waits for that one.
    const isBehind = this.transaction !== undefined && this.transaction.calls.size > 1;
    return waits && !isBehind && how !== 'lead' && keys.length === 1 && keys[0] === key;
  }

  /** Whether it was aborted before it had the lock, and goes on all the same. */
  get ignoresAbort(): boolean {
    return this.#enteredAt === undefined && this.#aborter?.signal.aborted === true;
  }

  /**
   * Whether its code has ended, and a transaction keeps its lock, perhaps for other calls: its caller may have its
   * answer.
   */
  get isLeftToTransaction(): boolean {
    return this.#leftAt !== undefined && this.isKept;
  }

  isInsideOf(other: LockedCall): boolean {
    return this.#ancestors().includes(other);
  }

  /**
   * Whether it is in the lock of another call, or may be: as a guest, or by its transaction while it waits for a second
   * key.
   */
  mayBeIn(other: LockedCall): boolean {
    const isMate = this.isGuest || (this.transaction !== undefined && this.transaction === other.transaction);
    const sharesKey = other.call.keys.some((key) => this.call.keys.includes(key));
    // A call inside it that has not entered yet has its keys already, as far as it got, also where the call around it
    // has ended.
    const mayBeRoot = [this, ...this.#ancestors()].some(({ possibleRoots }) =>
      [...possibleRoots.values()].some((roots) => roots.has(other)),
    );
    return sharesKey && ((isMate && this.process === other.process) || mayBeRoot);
  }

  /** Never rejects: what goes wrong with the library is a failure of the run. */
  async run(): Promise<void> {
    const { call, process } = this;
    this.begins();
    this.#world.note(
      () => `${process.id}: ${this.by} begins inside ${this.#place.parent?.by}: ${JSON.stringify({ ...call, steps: undefined })}`,
    );
    let error: LockError | undefined;
    try {
      await this.#enter();
    } catch (thrown) {
      error = thrown as LockError;
    }
    this.#hasReturned = true;
    if (call.how === 'observable') {
      // Its code goes on for itself where the Observable ended before: with its maxHold, or as it was unsubscribed
      // from.
      this.#world.follow(process, this.#running);
    }
    this.#world.note(() => `${process.id}: ${this.by} ends: ${error ? (error.detail ?? error.message) : 'returned'}`);
    this.#checkEnd(error);
    if ((error as LockLostError | undefined)?.bodyRuns) {
      // The caller waits no longer; what the body is inside of stays locked until it ends, and is then released.
      const end = (): void => void process.sleep(this.#world.commandLimitMs + 50).then(() => this.ends());
      void this.#running.then(end, end);
    } else {
      this.ends();
    }
  }

  begins(): void {
    this.#world.begins(this);
    this.#world.meets(this);
  }

  ends(): void {
    this.endedAt = this.#world.now;
    this.#world.ends(this);
    // Whom it was inside of may have ended before, and left the lock to it.
    for (const outer of [...this.#ancestors(), ...this.roots.values()].filter(({ endedAt }) => endedAt < Infinity)) {
      outer.endedAt = this.endedAt;
    }
  }

  /** The transaction around it has ended, and with it what kept the locks that it was inside of. */
  endsWithTransaction(): void {
    for (const call of [this, ...this.roots.values()].filter(({ endedAt }) => endedAt < Infinity)) {
      call.endedAt = this.#world.now;
    }
  }

  /** A leader is asked to stop. */
  stops(): void {
    this.#stopsAt = this.process.clock.monotonic();
  }

  /** Whether it was asked for so long ago that it gives its lock up, though its code goes on. */
  get hasToGiveUp(): boolean {
    return this.process.clock.monotonic() + 1 >= this.#stopsAt + Math.max(LEAST_GRACE_MS, this.call.ttl);
  }

  /** The code of a leader, for one term. */
  async lead(lock: Lock): Promise<void> {
    await this.#body(lock);
    this.ends();
  }

  async releaseEarly(): Promise<void> {
    if (this.call.how === 'acquire' || this.call.how === 'tryAcquire') {
      this.isReleased = true;
      await this.lock?.release();
    }
  }

  makeTicket(): void {
    this.#world.keepsTicket(this.ticket);
    this.uses(featuresOf('ticket'));
  }

  /** Its ticket, where it makes one. */
  get ticket(): Ticket | undefined {
    try {
      return this.lock && { keys: this.call.keys, text: this.lock.makeTicket() };
    } catch {
      return undefined;
    }
  }

  uses(features: number): void {
    this.features |= features;
    this.#world.meets(this);
  }

  async #enter(): Promise<void> {
    const { call, process, by } = this;
    const { ttl, wait, renew, reentry, maxHold, joins } = call;
    const ticket = joins && this.#world.ticketFor(call.keys, joins)?.text;
    this.#hasTicket = ticket !== undefined;
    const signal = this.#abortion();
    const options = { ttl, renew, reentry, maxHold, minHold: minHoldOf(call), by, signal, ticket };
    switch (call.how) {
      case 'withLock':
        return process.service.withLock(call.keys, { ...options, wait }, (lock) => (this.#running = this.#body(lock)));
      case 'generator':
        return generate({ process, call, by, signal }, (lock) => this.#items(lock));
      case 'observable':
        this.#wasUnsubscribed = await observe(
          { process, call, by, signal },
          (lock) => (this.#running = this.#body(lock)),
          () => this.#leaves(),
        );
        return;
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
    void this.process.sleep(this.call.abortAfterMs).then(() => {
      this.uses(this.#hasReturned ? 0 : featuresOf('abort'));
      aborter.abort();
    });
    return aborter.signal;
  }

  async #body(lock: Lock): Promise<void> {
    this.#enters(lock);
    for (const step of this.call.steps) {
      await this.#step(step);
    }
    if (this.call.lateMs) {
      await this.process.sleep(this.call.lateMs);
    }
    this.#leaves();
  }

  /** Each step of the body is an item. */
  async *#items(lock: Lock): AsyncGenerator {
    this.#enters(lock);
    try {
      for (const step of this.call.steps) {
        await this.#step(step);
        yield;
      }
    } finally {
      this.#leaves();
    }
  }

  #enters(lock: Lock): void {
    this.lock = lock;
    this.signal = lock.signal;
    lock.signal.addEventListener('abort', () => this.process.work(this.call.listenerMs), { once: true });
    this.#checkEntry(lock);
    this.#enteredAt = this.#world.now;
    this.#beganAt = this.process.clock.monotonic();
    this.#world.note(() => `${this.process.id}: ${this.by} is inside ${lock.keys.map((key) => `${key} at ${lock.fenceOf(key)}`).join()}`);
    this.#world.inside.add(this);
    if (this.transaction?.hasEnded === false) {
      [this, ...this.roots.values()].forEach((call) => call.#keepers.add(this.transaction as OpenTransaction));
    }
  }

  #leaves(): void {
    if (this.#leftAt === undefined && this.lock) {
      this.#heldToTheEnd = this.lock.isHeld() || isDoubted(this.lock);
      this.#leftAt = this.#world.now;
      this.#world.inside.delete(this);
      if (this.isSurelyKept) {
        this.#world.keeps(this);
      }
    }
  }

  #step(step: Step): Promise<void> {
    return playStep(this.process, step, { ...this.#place, parent: this });
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
      for (const other of this.#world.kept) {
        if (other.isSurelyKept && !this.#isUnsure && other.roots.get(key) === root && !this.#ofTransactions().includes(other)) {
          this.#fail(`entered the lock of ${other.by} on "${key}", which a transaction keeps`);
        }
      }
    }
  }

  /**
   * A re-entry has the fence of the call that it is inside of, or of a call of its transaction. Any other call has a
   * fence that nobody had before.
   */
  #checkFence(key: string, fence: number): void {
    const { leases } = this.#world;
    const enclosing = this.#ancestors().filter(({ call, lock }) => lock && call.keys.includes(key));
    const kept = this.#ofTransactions().filter(({ call, lock }) => lock && call.keys.includes(key));
    const obtained = leases.find(this.by, key, fence) !== undefined;
    const hasLeft = (holder: LockedCall): boolean => (holder.#leftAt ?? Infinity) < this.startedAt && !kept.includes(holder);
    const holders = obtained ? [] : [...kept, ...enclosing].filter(({ lock }) => lock?.fenceOf(key) === fence);
    const holder = holders.find((each) => !hasLeft(each)) ?? holders[0];
    const isNew = this.#world.isNewFence(key, fence);
    // A guest may be in the lease of another one, and where a guest is a holder, either lease may be it.
    const roots = new Set(holders.map((each) => each.roots.get(key)));
    this.roots.set(key, this.isGuest || roots.size > 1 ? this : (holder?.roots.get(key) ?? this));
    this.possibleRoots.set(key, new Set([this, ...holders.flatMap((each) => [...(each.possibleRoots.get(key) ?? [])])]));
    if (this.isGuest) {
      return;
    }
    if (holder ? this.call.reentry === 'never' || hasLeft(holder) : !isNew) {
      this.#fail(`has fence ${fence} of "${key}", which is another call's`);
    }
    if (holder || this.call.reentry === 'never') {
      return;
    }
    const nearest = enclosing.find(({ isInside }) => isInside);
    if (nearest && (nearest.#enteredAt ?? Infinity) <= this.startedAt) {
      this.#fail(`acquired "${key}" again inside ${nearest.by}, which has it`);
    }
    const isLost = (call: LockedCall): boolean => leases.of(call, key)?.lost === true;
    const before = kept.find((call) => call.isSurelyKept && (call.#enteredAt ?? Infinity) < this.startedAt && !isLost(call));
    if (before && this.isSurelyKept) {
      this.#fail(`acquired "${key}" again, though ${before.by} of its transaction has it`);
    }
  }

  #checkEnd(error: LockError | undefined): void {
    const { how } = this.call;
    const entered = this.#enteredAt !== undefined;
    const waitedMs = (this.#enteredAt ?? this.#world.now) - this.startedAt;
    const isLost = this.call.keys.some((key) => this.#mayHaveLost(key));
    this.#checkWait(waitedMs);
    if (this.#wasUnsubscribed) {
      return;
    }
    if (error === undefined) {
      if (!entered && how !== 'tryAcquire') {
        this.#fail('returned without having run');
      }
      // Of a handle, only its signal tells of a loss.
      // One that re-entered has left when its code ends, and the call around it may lose the lock a moment later.
      const own = this.call.keys.filter((key) => this.roots.get(key) === this);
      const wasLost = own.some((key) => isLostInside(this.#world.leases.of(this, key)));
      if (how !== 'acquire' && how !== 'tryAcquire' && (wasLost || !this.#heldToTheEnd)) {
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
        // A generator says so where it goes on, and an Observable at once.
        if (entered && how !== 'generator' && how !== 'observable' && (error as LockLostError).bodyRuns !== this.isInside) {
          this.#fail(`ended with bodyRuns: ${String((error as LockLostError).bodyRuns)}, which is wrong`);
        }
        // A handle may be lost between its grant and what runs inside.
        if (!isLost && (entered ? this.#heldToTheEnd && !this.#mayEndEarly(error) && !this.isGuest : !this.#mayBeLost())) {
          this.#fail('was lost without a loss');
        }
        return;
      default:
        this.#fail(`ended with ${error.name}: ${error.detail ?? error.message}`);
    }
    if (entered) {
      this.#fail(`ran, and then ended with ${error.name}: ${error.detail}`);
    }
  }

  /**
   * Whether a lease that it may be in was lost: the last call to leave the lease tells, also where its release finds
   * the lock gone.
   */
  #mayHaveLost(key: string): boolean {
    return [...(this.possibleRoots.get(key) ?? [])].some(
      (root) => this.#world.leases.find(root.by, key, this.lock?.fenceOf(key) ?? 0)?.lost,
    );
  }

  /** An Observable ends already when its maxHold is over, and a generator that goes on while its lease is in doubt. */
  #mayEndEarly(error: LockError): boolean {
    const { how } = this.call;
    return (how === 'observable' && this.signal?.aborted === true) || (how === 'generator' && isDoubt(error));
  }

  /**
   * Whether it may be lost before it ran: with a call that it is inside of, or since something took its time between
   * its grant and its code.
   */
  #mayBeLost(): boolean {
    const around = this.#ancestors().filter((call) => (call.#leftAt ?? Infinity) >= this.startedAt);
    const enclosing = [...around, ...this.#ofTransactions().filter(({ lock }) => lock)];
    const { now, workingUntil, clock } = this.process;
    const stoodStill = workingUntil > this.startedAt || clock.sleptBefore(now) > clock.sleptBefore(this.startedAt);
    // A lock that it is inside of may have been in doubt when it got its last key, and not be in doubt any more.
    const wasDoubted = enclosing.length > 0 && this.call.keys.length > 1 && clock.isAhead;
    const isToldAtOnce = this.call.how === 'observable' && enclosing.some(({ signal }) => signal?.aborted);
    const mayBe = isToldAtOnce || this.isGuest || this.#isUnsure || stoodStill || wasDoubted;
    // A shutdown may end its own lease between its grant and its code, and the lease of a call of its transaction which
    // never ran. So may a forced release, whose message may come before the grant. Otherwise a lease that is lost while
    // a second key is waited for is acquired anew.
    const { leases } = this.#world;
    const wasTold = [this, ...this.#ofTransactions()].some((call) =>
      this.process.isClosing ? leases.wasLost(call) : leases.wasForced(call),
    );
    return mayBe || wasTold || enclosing.some(({ isReleased, lock }) => isReleased || !lock?.isHeld());
  }

  #checkRefusal(key: string, reason: string): void {
    if (reason === 'aborted' && !this.#aborter?.signal.aborted) {
      this.#fail('was aborted by nobody');
    }
    if (reason === 'shutdown' && !this.process.isClosing) {
      this.#fail('was refused by a shutdown that nobody asked for');
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
    // A lock that it has already may be in doubt then, and is left once the store has answered, or a command's time is
    // over.
    const doubtMs = call.keys.length > 1 && process.clock.isAhead ? Math.min(call.ttl / 4, 1_000) + 50 : 0;
    if (process.pausedMs === 0 && waitedMs > waitMs * 1.01 + Math.max(attemptsMs, doubtMs)) {
      this.#fail(`waited for ${waitedMs} ms`);
    }
  }

  #ancestors(): LockedCall[] {
    const { parent } = this.#place;
    return parent ? [parent, ...parent.#ancestors()] : [];
  }

  /** The other calls of its transaction, and of those of the calls around it, whose locks it may enter. */
  #ofTransactions(): LockedCall[] {
    const mates = (of: LockedCall): LockedCall[] => [...(of.transaction?.calls ?? [])];
    return [this, ...this.#ancestors()].flatMap(mates).filter((call) => call !== this);
  }

  #features(): number {
    const { keys, how, minHold, maxHold, reentry, joins } = this.call;
    return featuresOf(
      this.isGuest && 'ticket',
      joins === 'ended' && 'late ticket',
      this.transaction !== undefined && 'transaction',
      how === 'lead' && 'leader',
      (how === 'acquire' || how === 'tryAcquire') && 'handle',
      how === 'generator' && 'generator',
      how === 'observable' && 'observable',
      keys.length > 1 && 'two keys',
      minHold > 0 && 'minHold',
      maxHold !== undefined && 'maxHold',
      reentry === 'never' && 'reentry: never',
      this.#place.isOutside === true && 'outsideLocks',
    );
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
    return isDoubt(error as LockError);
  }
}

function isDoubt({ detail }: LockError): boolean {
  return detail.includes('cannot be trusted at this moment');
}

function longestTtl({ ttl, steps }: { readonly ttl: number; readonly steps: readonly Step[] }): number {
  const of = (step: Step): number[] =>
    step.do === 'call' ? step.calls.map(longestTtl) : 'steps' in step ? step.steps.flatMap((inner) => of(inner)) : [];
  return Math.max(ttl, ...steps.flatMap((step) => of(step)));
}

/**
 * Whether a lease is lost inside a call. A lease that a transaction keeps may be lost when the caller has its answer,
 * and has not read it yet: also while another call is inside.
 */
function isLostInside(lease: { readonly lost: boolean; readonly lostKept?: boolean } | undefined): boolean {
  return lease?.lost === true && lease.lostKept !== true;
}
