import type { CallOptions } from '../words/call-options.js';
import type { Caller } from '../words/caller.js';
import { CallStack } from '../calls/call-stack.js';
import { type Clock, commandLimit, type Moment, ttlUntil } from '../seam/time.js';
import type { LockLostError } from '../words/errors.js';
import { Hold, type Owner } from './hold.js';
import { LeaseTerm } from './lease-term.js';
import { doubtOf, maxHoldOver } from './loss.js';
import type { HoldRecord } from '../seam/lock-store.js';
import type { TicketEntry } from './ticket.js';

/**
 * The state of a lease.
 *
 * | state | meaning | next |
 * |---|---|---|
 * | `wanted` | it is asked for | `held`; `gone`, where it serves a call and a renewal finds its end before the start |
 * | `held` | it was granted, and its code runs | any of those below |
 * | `overdue` | `maxHold` is over: code notified, no more renewals | `lingering`, `gone`, `lost`, `released` |
 * | `lingering` | its code has ended, and `minHold` keeps the lock | `gone`, `lost`, `released` |
 * | `gone` | the store no longer has the lock, and the code is to be notified | `lost`, `released` |
 * | `lost` | it ended before its code did; the code was notified | |
 * | `released` | its code ended first; it is released, or the next lease has its hold | `lost` (gone at release) |
 */
type LeaseState = 'wanted' | 'held' | 'overdue' | 'lingering' | 'gone' | 'lost' | 'released';

/** The options of a call that its leases need. */
type LeaseOptions = Pick<CallOptions, 'caller' | 'ttlMs' | 'renew' | 'shares'>;

/** For how long after its grant further readers of this process may enter a lease, in milliseconds. */
const BESIDE_MS = 25;

/**
 * A grant of the store to this process for a time: a hold in the lock of an owner, and the locked calls inside the
 * hold. No other class writes its state; `Leases` decides when it ends.
 */
export class Lease extends Hold {
  readonly caller: Caller;
  readonly calls = new CallStack();
  /** Until when it is trusted, and when it is renewed. */
  readonly term: LeaseTerm;
  readonly #clock: Clock;
  readonly #renews: boolean;
  #state: LeaseState = 'wanted';
  /** The longest lease that its calls asked for; the next renewal asks for it. */
  #ttlMs: number;
  #acquiredAt = 0;
  /** Since when calls of this process, one after the other, have had the lock by this grant. */
  #servesSince = 0;
  /** Since when calls of this process, one after the other, have had the lock by this grant and those before it. */
  #turnSince = 0;
  /** The lease that took over while a renewal was on its way; the answer of the renewal is for the successor. */
  #successor: Lease | undefined;
  #loss: LockLostError | undefined;

  /** `ticket`: of the lock to enter; undefined for one that is to be acquired. */
  constructor(clock: Clock, key: string, owner: Owner, { caller, ttlMs, renew, shares }: LeaseOptions, ticket?: TicketEntry) {
    super(key, owner, shares, ticket);
    if (this.shares !== undefined) {
      this.calls.runInParallel();
    }
    this.#clock = clock;
    this.caller = caller;
    this.#renews = renew;
    this.#ttlMs = ttlMs;
    this.term = new LeaseTerm(clock, ttlMs);
  }

  get state(): LeaseState {
    return this.#state;
  }

  /** Whether it was lost or released. */
  get hasEnded(): boolean {
    return this.#state === 'lost' || this.#state === 'released';
  }

  get hasCode(): boolean {
    return this.#state === 'held' || this.#state === 'overdue';
  }

  get ttlMs(): number {
    return this.#ttlMs;
  }

  /** Whether its call wanted it renewed. */
  get renews(): boolean {
    return this.#renews;
  }

  get acquiredAt(): number {
    return this.#acquiredAt;
  }

  /** For how long its call has had it, in milliseconds. */
  get heldMs(): number {
    return this.#clock.monotonic() - this.#acquiredAt;
  }

  get servesSince(): number {
    return this.#servesSince;
  }

  get turnSince(): number {
    return this.#turnSince;
  }

  /** The error of a lease that was lost. */
  get loss(): LockLostError | undefined {
    return this.#loss;
  }

  /** The time limit of its commands, in milliseconds. */
  get limitMs(): number {
    return commandLimit(this.term.grantedMs);
  }

  /** Whether it can be trusted at this moment. */
  get isLive(): boolean {
    return !this.hasEnded && this.remainingMs > 0;
  }

  get remainingMs(): number {
    return this.term.remainingMs;
  }

  /** How much of it is left, as a part of 1. */
  get margin(): number {
    return Math.max(0, this.remainingMs) / this.term.grantedMs;
  }

  /**
   * For how long running code can trust a lease that is renewed, in ms; undefined for a lease that is not renewed: it
   * ends as it is meant to.
   */
  get marginMs(): number | undefined {
    return this.#state === 'held' && this.term.isRenewed ? this.remainingMs : undefined;
  }

  /** Whether its time is over, though it has not ended yet. */
  get isOver(): boolean {
    return !this.hasEnded && this.term.isOver;
  }

  /**
   * Why a lease that is not lost cannot be trusted now: the wall clock is past its end, so the machine may have slept.
   */
  get doubt(): LockLostError | undefined {
    return this.hasEnded || !this.term.isInDoubt ? undefined : doubtOf(this.key);
  }

  /** The record that a store is given to acquire, join or release the lease. */
  record(limitMs = this.limitMs): HoldRecord {
    return this.recordFor(this.#ttlMs, limitMs, this.#state === 'lingering', this.caller.by);
  }

  /**
   * The record of a renewal at `now`. A lease that is not renewed asks for `fixedMs` from now: by default for nothing
   * that it does not have, so that it is only confirmed.
   */
  renewal(now: number, fixedMs = 1): HoldRecord {
    const lingering = this.#state === 'lingering';
    const ttlMs = lingering ? ttlUntil(Math.max(0, this.term.minHoldAt - now)) : this.term.isRenewed ? this.#ttlMs : fixedMs;
    // The store knows which call was granted the lock. It does not know which call the lease serves since, nor who is
    // in the lock by a ticket.
    const isNamed = this.isReused || this.hasTicket || this.shares !== undefined;
    return this.recordFor(ttlMs, this.limitMs, lingering && !this.hasOthers, isNamed ? this.caller.by : '');
  }

  /** Asks for a fence for itself and one for each of so many calls behind it, unless it has asked before. */
  askForBlock(waitingHere: number): void {
    this.askFor(this.#renews ? 1 + waitingHere : 1);
  }

  /** The store granted it, on an attempt that was sent at `sent`; false where another call had the grant before. */
  start(fence: number, sent: Moment, expires: boolean): boolean {
    this.#acquiredAt = this.#clock.monotonic();
    if (this.#state === 'gone') {
      // The lease serves this call since a moment ago, and a renewal has found its end meanwhile.
      return false;
    }
    this.#state = 'held';
    const isNew = this.granted(fence);
    if (isNew) {
      this.#servesSince = this.#acquiredAt;
      this.#turnSince ||= this.#acquiredAt;
    }
    this.term.extend(sent, expires ? this.#ttlMs : Infinity);
    this.term.setRenewed(this.#renews && expires, this.#acquiredAt);
    return isNew;
  }

  /**
   * Whether the lease may serve the next call of this process once its own call has ended: it has a turn left, both
   * calls ask for a lease of the same length and so share the key, nobody else is in the lock, and more than half of
   * the lease is left.
   */
  canServe(next: Lease): boolean {
    return this.hasNextTurn && this.#suits(next);
  }

  /** Whether a reader of this process may enter it beside its own call. */
  canAdmit(next: Lease): boolean {
    return this.#clock.monotonic() - this.#servesSince < BESIDE_MS && this.#suits(next);
  }

  #suits(next: Lease): boolean {
    return (
      this.#state === 'held' &&
      this.#renews &&
      next.#renews &&
      next.#ttlMs === this.#ttlMs &&
      next.shares === this.shares &&
      this.term.grantedMs >= this.#ttlMs &&
      this.remainingMs > this.#ttlMs / 2
    );
  }

  /** Lets a reader of this process in, beside its own call. Answers when the grant was asked for. */
  admit(next: Lease): { readonly fence: number; readonly sent: Moment } {
    next.enterBeside(this);
    next.#servesSince = this.#servesSince;
    return { fence: next.fence, sent: this.term.sent };
  }

  /** It is asked for before other processes, after the lease of the call `before`; or anew, where there is none. */
  goesOnFor(before: Lease | undefined): void {
    this.#turnSince = before ? before.#turnSince : 0;
  }

  /** Serves the next call of this process: `next` gets the grant of the store. Answers when the grant was asked for. */
  serve(next: Lease): { readonly fence: number; readonly sent: Moment } {
    next.takeOver(this);
    next.#servesSince = this.#servesSince;
    next.#turnSince = this.#turnSince;
    next.term.setRenewing(this.term.isRenewing);
    this.#successor = this.term.isRenewing ? next : undefined;
    this.#state = 'released';
    return { fence: next.fence, sent: this.term.sent };
  }

  /** A nested call asks for more with the next renewal, and never for less. */
  raise(ttlMs: number): void {
    this.#ttlMs = Math.max(this.#ttlMs, ttlMs);
  }

  /**
   * Its code has ended, and `minHold` keeps the lock. One renewal makes the lease end with `minHold`, also if this
   * process ends.
   */
  linger(): void {
    this.#state = 'lingering';
    this.term.linger();
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
    this.term.gone();
  }

  /** Notifies the code that `maxHold` is over: the lease is not renewed any more. */
  overdue(now: number): void {
    this.#state = 'overdue';
    this.term.overdue(now, this.#ttlMs);
    this.calls.notify(maxHoldOver(this.key, this.term.deadline - now));
  }

  /**
   * A renewal that asked for `record` at `sent` was answered: whether the store has the hold, or undefined where it is
   * unknown. Gives the lease that the answer was for.
   */
  renewalAnswered(held: boolean | undefined, record: HoldRecord, sent: Moment): Lease {
    this.term.setRenewing(false);
    const successor = this.#successor;
    if (successor) {
      this.#successor = undefined;
      return successor.renewalAnswered(held, record, sent);
    }
    if (held === false && !this.hasEnded) {
      this.gone();
    } else if (!this.hasEnded) {
      // Its code may have seen that the lease was over. This is final, also where a blocked event loop has kept the
      // answer back.
      this.term.renewed(held === true && !(this.hasCode && this.isOver), record.lingering, sent, record.ttlMs);
    }
    return this;
  }

  /**
   * The store confirmed a lease of `ttlMs` that was asked for at `sent`. A deadline never moves back, and does not move
   * on once it is over.
   */
  confirmed(sent: Moment, ttlMs: number): void {
    if (!this.isOver) {
      this.term.extend(sent, ttlMs);
    }
  }
}
