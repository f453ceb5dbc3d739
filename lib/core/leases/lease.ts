import { randomUUID } from 'node:crypto';
import type { Caller } from '../words/caller.js';
import { CallStack } from '../calls/call-stack.js';
import type { Clock } from '../seam/clock.js';
import { LockLostError } from '../words/errors.js';
import { LeaseTerm } from './lease-term.js';
import { commandLimit, LONGEST_COMMAND_MS, ttlUntil, type Moment } from '../seam/lease-time.js';
import { MOST_FENCES, type HoldRecord } from '../seam/lock-store.js';
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
 * | `released` | its code ended first; its release was sent, or it serves the next call | `lost`, where the release found it gone |
 */
export type LeaseState = 'wanted' | 'held' | 'overdue' | 'lingering' | 'gone' | 'lost' | 'released';

/** What a call wants to hold. */
export interface LeaseRequest {
  readonly key: string;
  readonly owner: Owner;
  readonly caller: Caller;
  readonly ttlMs: number;
  /** Whether it is renewed while its code runs. */
  readonly renews: boolean;
  /** The lock to enter by a ticket: its fence in the store, and that of the call there; undefined for one that is to be acquired. */
  readonly joined?: { readonly storedFence: number; readonly fence: number };
}

/**
 * What a store grants to this process for a time: a hold in the lock of an owner, and the locked calls inside it.
 * Nothing else writes its state; `Leases` decides when it ends.
 */
export class Lease {
  readonly key: string;
  readonly caller: Caller;
  /** Whether it entered a running lock by a ticket, and so has no line in this process. */
  readonly isJoined: boolean;
  readonly calls = new CallStack();
  readonly #clock: Clock;
  readonly #renews: boolean;
  readonly #term: LeaseTerm;
  #owner: Owner;
  #state: LeaseState = 'wanted';
  #id: string = randomUUID();
  #fence: number;
  /** The fence of its lock in the store: the first of the block, which other calls may have had before this one. */
  #storedFence: number;
  /** How many fences it asks the store for; 0 until the first attempt. Every attempt of one hold asks for as many. */
  #fences = 0;
  /** The longest lease that its calls asked for; the next renewal asks for it. */
  #ttlMs: number;
  #isShared: boolean;
  #acquiredAt = 0;
  /** Since when calls of this process, one after the other, have had the lock. */
  #servesSince = 0;
  #maxHoldAt = Infinity;
  #minHoldAt = 0;
  /** When the next renewal is due; `Infinity` for a lease that is not renewed. */
  #renewAt = Infinity;
  #isRenewing = false;
  /** The lease that took over while a renewal was on its way; the answer is for that one. */
  #successor: Lease | undefined;
  #loss: LockLostError | undefined;

  constructor(clock: Clock, { key, owner, caller, ttlMs, renews, joined }: LeaseRequest) {
    this.#clock = clock;
    this.key = key;
    this.#owner = owner;
    this.caller = caller;
    this.#renews = renews;
    this.#ttlMs = ttlMs;
    this.#term = new LeaseTerm(clock, ttlMs);
    this.isJoined = joined !== undefined;
    this.#isShared = this.isJoined;
    this.#fence = joined?.fence ?? 0;
    this.#storedFence = joined?.storedFence ?? 0;
  }

  get state(): LeaseState {
    return this.#state;
  }

  /** Whether it was lost or released. */
  get hasEnded(): boolean {
    return this.#state === 'lost' || this.#state === 'released';
  }

  /** Whether it was granted, and its code has not ended. */
  get hasCode(): boolean {
    return this.#state === 'held' || this.#state === 'overdue';
  }

  get owner(): Owner {
    return this.#owner;
  }

  get fence(): number {
    return this.#fence;
  }

  /** Whether the store granted it to a call before, whose lease serves this one. */
  get isServed(): boolean {
    return this.#fence !== this.#storedFence && !this.isJoined;
  }

  /** The fence by which the store knows its lock. */
  get storedFence(): number {
    return this.#storedFence;
  }

  get ttlMs(): number {
    return this.#ttlMs;
  }

  get grantedMs(): number {
    return this.#term.grantedMs;
  }

  get acquiredAt(): number {
    return this.#acquiredAt;
  }

  get servesSince(): number {
    return this.#servesSince;
  }

  get minHoldAt(): number {
    return this.#minHoldAt;
  }

  /** The moment from which it is not trusted any more. */
  get deadline(): number {
    return this.#term.deadline;
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
    return commandLimit(this.#term.grantedMs);
  }

  /** Whether it can be trusted at this moment. */
  get isLive(): boolean {
    return !this.hasEnded && this.remainingMs > 0;
  }

  /** For how long it can be trusted; negative where it cannot. */
  get remainingMs(): number {
    return this.#term.remainingMs;
  }

  /** How much of it is left, as a part of 1. */
  get margin(): number {
    return Math.max(0, this.remainingMs) / this.grantedMs;
  }

  /** For how long code that runs can trust it, where it is renewed; undefined for others, which end as they are meant to. */
  get marginMs(): number | undefined {
    return this.#state === 'held' && this.#renewAt < Infinity ? this.remainingMs : undefined;
  }

  /** Whether its time is over, though it has not ended yet. */
  get isOver(): boolean {
    return !this.hasEnded && this.#term.isOver;
  }

  /**
   * Why a lease that is not lost cannot be trusted now: the wall clock is past its end, so the machine may have slept.
   */
  get doubt(): LockLostError | undefined {
    return this.hasEnded || !this.#term.isInDoubt
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
      owner: this.#owner.id,
      id: this.#id,
      fence: this.#storedFence,
      fences: Math.max(1, this.#fences),
      ttlMs: this.#ttlMs,
      limitMs,
      lingering: this.#state === 'lingering',
      by: this.caller.by,
    });
  }

  /**
   * What a store is given to renew it. One that is not to be renewed is only confirmed: it asks for nothing that it
   * does not have.
   */
  renewal(now: number): HoldRecord {
    const lingering = this.#state === 'lingering';
    const ttlMs = lingering ? ttlUntil(Math.max(0, this.#minHoldAt - now)) : this.#renewAt === Infinity ? 1 : this.#ttlMs;
    // The store knows who was granted the lock, and not whom it serves since, nor who is in it by a ticket.
    const by = this.isServed || this.#isShared ? this.caller.by : '';
    return Object.freeze({ ...this.record(), ttlMs, lingering, by });
  }

  /** A hold that was released never comes in again, so the next attempt is another hold. That of a ticket has its lock's fence. */
  renewIdentity(): void {
    this.#id = randomUUID();
    if (!this.isJoined) {
      this.#storedFence = 0;
      this.#fences = 0;
    }
  }

  /** Asks for a fence for itself and one for each of so many calls behind it, unless it has asked before. */
  askFor(waitingHere: number): void {
    if (this.#fences === 0) {
      this.#fences = this.#renews ? Math.min(1 + waitingHere, MOST_FENCES) : 1;
    }
  }

  /** The store granted it, on an attempt that was sent at `sent`. */
  granted(fence: number, sent: Moment, expires: boolean): void {
    this.#acquiredAt = this.#clock.monotonic();
    if (this.#state === 'gone') {
      // It serves this call since a moment ago, and a renewal has found out meanwhile.
      return;
    }
    this.#state = 'held';
    if (this.#storedFence === 0) {
      this.#storedFence = fence;
      this.#fence = fence;
      this.#servesSince = this.#acquiredAt;
    }
    this.#term.extend(sent, expires ? this.#ttlMs : Infinity);
    this.#renewAt = this.#renews && expires ? this.#nextRenewal(this.#acquiredAt) : Infinity;
  }

  /**
   * Whether it may serve the next call of this process once its own has ended: a fence of its block is left, the calls ask for the
   * same lease, nobody else is in the lock, and more than half of the lease is left.
   */
  canServe(next: Lease): boolean {
    return (
      this.#state === 'held' &&
      !this.#isShared &&
      this.#renews &&
      next.#renews &&
      next.#ttlMs === this.#ttlMs &&
      this.#term.grantedMs >= this.#ttlMs &&
      this.#fence + 1 < this.#storedFence + this.#fences &&
      this.remainingMs > this.#ttlMs / 2
    );
  }

  /**
   * Serves the next call of this process: `next` gets what the store has granted, with the next fence of the block. Answers
   * when that was asked for.
   */
  serve(next: Lease): { readonly fence: number; readonly sent: Moment } {
    next.#owner = this.#owner;
    next.#id = this.#id;
    next.#storedFence = this.#storedFence;
    next.#fences = this.#fences;
    next.#fence = this.#fence + 1;
    next.#servesSince = this.#servesSince;
    next.#isRenewing = this.#isRenewing;
    this.#successor = this.#isRenewing ? next : undefined;
    this.#state = 'released';
    return { fence: next.#fence, sent: this.#term.sent };
  }

  /** Its call has all its locks: from here on `maxHold` and `minHold` count. */
  limit(maxHoldMs: number, minHoldMs: number): void {
    const now = this.#clock.monotonic();
    this.#maxHoldAt = now + maxHoldMs;
    this.#minHoldAt = now + minHoldMs;
  }

  /** A nested call asks for more with the next renewal, and never for less. */
  raise(ttlMs: number): void {
    this.#ttlMs = Math.max(this.#ttlMs, ttlMs);
  }

  /** Makes its part of a ticket: from now on others may be in the lock. */
  share(): Omit<TicketEntry, 'store'> {
    this.#isShared = true;
    return { key: this.key, secret: this.#owner.revealSecret(), fence: this.#fence, storedFence: this.#storedFence };
  }

  /** The part of a ticket by which nobody enters: the lock has ended, as far as its call goes, and may be another call's. */
  get ticketOfNone(): Omit<TicketEntry, 'store'> {
    return { key: this.key, secret: '', fence: this.#fence, storedFence: this.#storedFence };
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
    this.#term.endBy(-Infinity);
  }

  /** Notifies the code that `maxHold` is over: the lease is not renewed any more. */
  overdue(now: number): void {
    this.#state = 'overdue';
    this.#renewAt = Infinity;
    // Where leases do not end by time, this one gets an end here.
    this.#term.endBy(now + this.#ttlMs);
    this.calls.notify(
      new LockLostError(
        `Lock "${this.key}" has been held for its maxHold. It is not renewed any more and ends in ` +
          `${Math.ceil(this.#term.deadline - now)} ms. Make sure that the code stops when lock.signal aborts, or raise maxHold.`,
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
    return this.#state === 'held' ? Math.min(this.#term.deadline, this.#maxHoldAt) : this.#term.deadline;
  }

  /** Whether to renew it now, or nearly; after a jump of the wall clock, whether there is a lease to confirm. */
  needsRenewal(now: number, hasJumped: boolean): boolean {
    // One whose maxHold is over is not renewed, also where its code could not be notified yet.
    const isKept = now < this.#term.deadline && (now < this.#maxHoldAt || this.#state !== 'held');
    return isKept && !this.#isRenewing && (hasJumped ? this.#term.deadline < Infinity : this.#renewAt - this.#term.grantedMs / 30 <= now);
  }

  renewalSent(): void {
    this.#isRenewing = true;
  }

  /**
   * A renewal that asked for `record` at `sent` was answered: whether the store has the hold, or undefined where it is
   * unknown. Gives the lease that the answer was for.
   */
  renewalAnswered(held: boolean | undefined, record: HoldRecord, sent: Moment): Lease {
    this.#isRenewing = false;
    const successor = this.#successor;
    if (successor) {
      this.#successor = undefined;
      return successor.renewalAnswered(held, record, sent);
    }
    if (held === false && !this.hasEnded) {
      this.gone();
    } else if (!this.hasEnded) {
      // Its code may have seen that it was over. That is final, also where a blocked event loop has kept the answer back.
      this.#renewed(held === true && !(this.hasCode && this.isOver), record, sent);
    }
    return this;
  }

  #renewed(held: boolean, record: HoldRecord, sent: Moment): void {
    const now = this.#clock.monotonic();
    if (held) {
      this.#term.extend(sent, record.ttlMs);
    }
    if (this.#state === 'lingering' && !record.lingering) {
      // Its code ended meanwhile, and the store does not know yet.
      this.#renewAt = now;
    } else if (this.#renewAt < Infinity) {
      // An unknown outcome moves nothing: the old deadline stands, and the renewal is repeated before it.
      this.#renewAt = held ? this.#nextRenewal(now) : now + Math.min(this.#term.grantedMs / 10, LONGEST_COMMAND_MS);
    }
  }

  /** The store confirmed a lease of `ttlMs` that was asked for at `sent`; a deadline never moves back, and not on once it is over. */
  confirmed(sent: Moment, ttlMs: number): void {
    if (!this.hasEnded && !this.isOver) {
      this.#term.extend(sent, ttlMs);
    }
  }

  /**
   * When two thirds of the lease that was granted are left, or a little more, so that processes that started together
   * drift apart; at once where the grant took long. For `minHold`, once.
   */
  #nextRenewal(now: number): number {
    if (this.#state === 'lingering') {
      return this.#term.deadline < this.#minHoldAt ? now : Infinity;
    }
    return Math.max(now, this.#term.deadline - (this.#term.grantedMs / 3) * (2 + Math.random() / 10));
  }
}
