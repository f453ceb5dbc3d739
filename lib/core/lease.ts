import { randomUUID } from 'node:crypto';
import { CallStack } from './call-stack.js';
import type { Clock } from './clock.js';
import { LockLostError } from './errors.js';
import { commandLimit, leaseDeadline, LONGEST_COMMAND_MS, ttlUntil, wallDeadline, type Moment } from './lease-time.js';
import type { HoldRecord } from './lock-store.js';
import type { Owner } from './owner.js';
import type { TicketEntry } from './ticket.js';

/**
 * Where a lease stands.
 *
 * | state | meaning | next |
 * |---|---|---|
 * | `wanted` | it is asked for | `held` |
 * | `held` | it was granted, and its code runs | any of those below |
 * | `overdue` | `maxHold` is over: the code was notified, and the lease is not renewed | `gone`, `lost`, `released` |
 * | `lingering` | its code has ended, and `minHold` keeps the lock | `gone`, `lost`, `released` |
 * | `gone` | the store no longer has the lock, and the code is to be notified | `lost` |
 * | `lost` | it ended before its code did; the code was notified | |
 * | `released` | its code ended first, and its release was sent | `lost`, where the release found it gone |
 */
export type LeaseState = 'wanted' | 'held' | 'overdue' | 'lingering' | 'gone' | 'lost' | 'released';

/** What a call wants to hold. */
export interface LeaseRequest {
  readonly key: string;
  readonly owner: Owner;
  /** Host, process id and, where it is known, `Class.method`. */
  readonly by: string;
  readonly ttlMs: number;
  /** The fence of the lock to enter by a ticket; undefined for a lock that is to be acquired. */
  readonly joinedFence?: number;
}

/**
 * What a store grants to this process for a time: a hold in the lock of an owner, and the locked calls inside it.
 * Nothing else writes its state; `Leases` decides when it ends.
 */
export class Lease {
  readonly key: string;
  readonly owner: Owner;
  readonly by: string;
  /** Whether it entered a running lock by a ticket, and so has no line in this process. */
  readonly isJoined: boolean;
  readonly calls = new CallStack();
  readonly #clock: Clock;
  #state: LeaseState = 'wanted';
  #id: string = randomUUID();
  #fence: number;
  /** The longest lease that its calls asked for; the next renewal asks for it. */
  #ttlMs: number;
  /** The lease that was granted last. */
  #grantedMs: number;
  #isShared: boolean;
  #acquiredAt = 0;
  #deadline = 0;
  #wallDeadline = 0;
  #maxHoldAt = Infinity;
  #minHoldAt = 0;
  /** When the next renewal is due; `Infinity` for a lease that is not renewed. */
  #renewAt = Infinity;
  #isRenewing = false;
  #loss: LockLostError | undefined;

  constructor(clock: Clock, { key, owner, by, ttlMs, joinedFence }: LeaseRequest) {
    this.#clock = clock;
    this.key = key;
    this.owner = owner;
    this.by = by;
    this.#ttlMs = ttlMs;
    this.#grantedMs = ttlMs;
    this.isJoined = joinedFence !== undefined;
    this.#isShared = this.isJoined;
    this.#fence = joinedFence ?? 0;
  }

  get state(): LeaseState {
    return this.#state;
  }

  /** Whether it was lost or released. */
  get hasEnded(): boolean {
    return this.#state === 'lost' || this.#state === 'released';
  }

  get fence(): number {
    return this.#fence;
  }

  get ttlMs(): number {
    return this.#ttlMs;
  }

  get grantedMs(): number {
    return this.#grantedMs;
  }

  get acquiredAt(): number {
    return this.#acquiredAt;
  }

  get minHoldAt(): number {
    return this.#minHoldAt;
  }

  /** The moment from which it is not trusted any more. */
  get deadline(): number {
    return this.#deadline;
  }

  /** Whether other processes may be in the lock: it may then live on by a longer lease than this one. */
  get isShared(): boolean {
    return this.#isShared;
  }

  /** The error of a lease that was lost. */
  get loss(): LockLostError | undefined {
    return this.#loss;
  }

  /** The time limit of its commands, in milliseconds. */
  get limitMs(): number {
    return commandLimit(this.#grantedMs);
  }

  /** Whether it can be trusted at this moment. */
  get isLive(): boolean {
    return !this.hasEnded && this.remainingMs > 0;
  }

  /** For how long it can be trusted; negative where it cannot. */
  get remainingMs(): number {
    return Math.min(this.#deadline - this.#clock.monotonic(), this.#wallDeadline - this.#clock.wall());
  }

  /** Whether its time is over, though it has not ended yet. */
  get isOver(): boolean {
    return !this.hasEnded && this.#clock.monotonic() >= this.#deadline;
  }

  /**
   * Why a lease that is not lost cannot be trusted now: the wall clock is past its end, so the machine may have slept.
   */
  get doubt(): LockLostError | undefined {
    return this.hasEnded || this.#clock.wall() < this.#wallDeadline
      ? undefined
      : new LockLostError(
          `Lock "${this.key}" cannot be trusted at this moment: the wall clock went past the end of its lease, so the machine slept, or its ` +
            'clock was set. Repeat the call; lock.isHeld() is true again once the store has renewed the lease.',
          this.key,
          'expired',
        );
  }

  /** What a store is given to acquire, join or release it. */
  record(limitMs = this.limitMs): HoldRecord {
    return Object.freeze({
      key: this.key,
      owner: this.owner.id,
      id: this.#id,
      fence: this.#fence,
      ttlMs: this.#ttlMs,
      limitMs,
      lingering: this.#state === 'lingering',
      by: this.by,
    });
  }

  /**
   * What a store is given to renew it. One that is not to be renewed is only confirmed: it asks for nothing that it
   * does not have.
   */
  renewal(now: number): HoldRecord {
    const lingering = this.#state === 'lingering';
    const ttlMs = lingering ? ttlUntil(Math.max(0, this.#minHoldAt - now)) : this.#renewAt === Infinity ? 1 : this.#ttlMs;
    return Object.freeze({ ...this.record(), ttlMs, lingering });
  }

  /** A hold that was released never comes in again, so the next attempt is another hold. */
  renewIdentity(): void {
    this.#id = randomUUID();
  }

  /** The store granted it, on an attempt that was sent at `sent`. */
  granted(fence: number, sent: Moment, expires: boolean, renew: boolean): void {
    this.#state = 'held';
    this.#fence = fence;
    this.#acquiredAt = this.#clock.monotonic();
    this.#extend(sent, expires ? this.#ttlMs : Infinity);
    this.#renewAt = renew && expires ? this.#nextRenewal(this.#acquiredAt) : Infinity;
  }

  /** Its call has all its locks: from here on `maxHold` and `minHold` count. */
  limit(maxHoldMs: number, minHoldMs: number): void {
    const now = this.#clock.monotonic();
    this.#maxHoldAt = now + maxHoldMs;
    this.#minHoldAt = now + minHoldMs;
  }

  /** Its call was aborted: nothing keeps the lock. */
  dropMinHold(): void {
    this.#minHoldAt = 0;
  }

  /** A nested call asks for more with the next renewal, and never for less. */
  raise(ttlMs: number): void {
    this.#ttlMs = Math.max(this.#ttlMs, ttlMs);
  }

  /** Makes its part of a ticket: from now on others may be in the lock. */
  share(): TicketEntry {
    this.#isShared = true;
    return { key: this.key, secret: this.owner.revealSecret(), fence: this.#fence };
  }

  /**
   * Its code has ended, and `minHold` keeps the lock. One renewal makes the lease end with `minHold`, also if this
   * process ends.
   */
  linger(): void {
    this.#state = 'lingering';
    this.#renewAt = this.#clock.monotonic();
  }

  /** The end of a lease whose code has ended. */
  release(): void {
    this.#state = 'released';
  }

  /** The end of a lease whose code has not ended, or which the release found gone. */
  lose(loss: LockLostError): void {
    this.#state = 'lost';
    this.#loss = loss;
  }

  /** The store no longer has the lock: nothing is trusted from here on. */
  gone(): void {
    this.#state = 'gone';
    this.#deadline = -Infinity;
  }

  /** Notifies the code that `maxHold` is over: the lease is not renewed any more. */
  overdue(now: number): void {
    this.#state = 'overdue';
    this.#renewAt = Infinity;
    // Where leases do not end by time, this one gets an end here.
    this.#deadline = Math.min(this.#deadline, now + this.#ttlMs);
    this.calls.notify(
      new LockLostError(
        `Lock "${this.key}" has been held for its maxHold. It is not renewed any more and ends in ` +
          `${Math.ceil(this.#deadline - now)} ms. Make sure that the code stops when lock.signal aborts, or raise maxHold.`,
        this.key,
        'maxHold',
      ),
    );
  }

  /** When there is something to do: a renewal to send, or the code to notify. */
  get dueAt(): number {
    return Math.min(this.#isRenewing ? Infinity : this.#renewAt, this.notifyAt);
  }

  get renewAt(): number {
    return this.#renewAt;
  }

  /**
   * When the code is to be notified. Code that has ended loses nothing with the lease, unless the lock went before
   * `minHold` was over.
   */
  get notifyAt(): number {
    if (this.#state === 'lingering') {
      return Infinity;
    }
    return this.#state === 'held' ? Math.min(this.#deadline, this.#maxHoldAt) : this.#deadline;
  }

  /** Whether to renew it now, or nearly; after a jump of the wall clock, whether there is a lease to confirm. */
  needsRenewal(now: number, hasJumped: boolean): boolean {
    // One whose maxHold is over is not renewed, also where its code could not be notified yet.
    const isKept = now < this.#deadline && (now < this.#maxHoldAt || this.#state !== 'held');
    return isKept && !this.#isRenewing && (hasJumped ? this.#deadline < Infinity : this.#renewAt - this.#grantedMs / 30 <= now);
  }

  renewalSent(): void {
    this.#isRenewing = true;
  }

  /**
   * A renewal that asked for `record` at `sent` was answered: whether the store has the hold, or undefined where it is
   * unknown.
   */
  renewalAnswered(held: boolean | undefined, record: HoldRecord, sent: Moment): void {
    this.#isRenewing = false;
    if (this.hasEnded) {
      return;
    }
    if (held === false) {
      this.gone();
      return;
    }
    const now = this.#clock.monotonic();
    if (held) {
      this.#extend(sent, record.ttlMs);
    }
    if (this.#state === 'lingering' && !record.lingering) {
      // Its code ended meanwhile, and the store does not know yet.
      this.#renewAt = now;
    } else if (this.#renewAt < Infinity) {
      // An unknown outcome moves nothing: the old deadline stands, and the renewal is repeated before it.
      this.#renewAt = held ? this.#nextRenewal(now) : now + Math.min(this.#grantedMs / 10, LONGEST_COMMAND_MS);
    }
  }

  /** The store confirmed a lease of `ttlMs` that was asked for at `sent`; a deadline never moves back. */
  confirmed(sent: Moment, ttlMs: number): void {
    if (!this.hasEnded) {
      this.#extend(sent, ttlMs);
    }
  }

  #extend(sent: Moment, ttlMs: number): void {
    const deadline = leaseDeadline(sent.monotonic, ttlMs);
    const wall = wallDeadline(sent, Math.max(deadline, this.#deadline));
    if (deadline > this.#deadline) {
      this.#deadline = deadline;
      this.#wallDeadline = wall;
      this.#grantedMs = ttlMs;
    } else {
      // What a clock that stood still has missed of the lease is gone, though the lock is still there.
      this.#wallDeadline = Math.min(this.#wallDeadline, wall);
    }
  }

  /**
   * When two thirds of the lease that was granted are left, or a little more, so that processes that started together
   * drift apart; at once where the grant took long. For `minHold`, once.
   */
  #nextRenewal(now: number): number {
    if (this.#state === 'lingering') {
      return this.#deadline < this.#minHoldAt ? now : Infinity;
    }
    return Math.max(now, this.#deadline - (this.#grantedMs / 3) * (2 + Math.random() / 10));
  }
}
