import type { AttemptResult } from './attempt.js';
import type { LockStoreError } from '../words/errors.js';
import type { Lease } from './lease.js';
import type { Shares } from '../words/call-options.js';
import { MOST_FENCES, type Busy, type Place } from '../seam/lock-store.js';
import type { Waiter, WaitingLine } from '../calls/waiter.js';

/** A caller that waits in line, and the lease that it will hold. */
export interface NextCaller {
  readonly waiter: Waiter;
  readonly lease: Lease;
}

/**
 * The calls of this process that want one key: the contender or holder, and the waiters behind it, first come first
 * served. Also the process's place in the store's queue, and the last answer of the store.
 *
 * | state | meaning | next |
 * |---|---|---|
 * | contended | the contender has sent an attempt | held; paused; contended by the next, if it gives up |
 * | paused | the contender waits for a notification, an answer of the store, or `recheckAt` | contended |
 * | held | `lease` has the lock | held by the lease of the next waiter; contended; forgotten, where nobody waits |
 */
export class Line implements WaitingLine {
  readonly key: string;
  #lease: Lease | undefined;
  /** The lease before it. */
  #before: Lease | undefined;
  #place: Place | undefined;
  /** How the place wants the key. */
  #placeShares: Shares | undefined;
  #last: AttemptResult | undefined;
  #recheckAt = 0;
  /** Whether the store notified the process of its turn, perhaps while an attempt is on its way. */
  #isNotified = false;
  /** Callers of this process that had the lock one after the other. */
  #burst = 0;
  /**
   * The result that the contender begins with: of an exchange, of a lease that serves it, or of the attempt that went
   * straight.
   */
  #result: AttemptResult | Promise<AttemptResult> | undefined;
  /** The contender, while it waits between two attempts. */
  #paused: Waiter | undefined;
  /** The lease that the contender asked the store for, or goes on with the last answer for. */
  #wanted: Lease | undefined;
  #waiting: Map<Waiter, Lease> | undefined;
  /** Waiters that have asked beside the contender: they came before the others. */
  #haveAsked: Map<Waiter, Lease> | undefined;
  /** Calls that asked the store beside the contender, which has no answer yet. */
  #beside = 0;

  constructor(key: string) {
    this.key = key;
  }

  /** The lease that has the lock; undefined while the contender still tries. */
  get lease(): Lease | undefined {
    return this.#lease;
  }

  /** The process's place, from the first attempt that may queue to the grant. It outlives a caller that gives up. */
  get place(): Place | undefined {
    return this.#place;
  }

  /** Who has the lock, as far as this process knows. */
  get holder(): Lease | Busy | undefined {
    return this.#lease ?? (this.#last?.outcome === 'busy' ? this.#last.busy : undefined);
  }

  /** The current holder, or the holder before it. */
  get lastHolder(): Lease | Busy | undefined {
    return this.holder ?? this.#before;
  }

  /** Why the store failed the contender; undefined once it has answered. */
  get failure(): LockStoreError | undefined {
    return this.#last?.outcome === 'failed' ? this.#last.error : undefined;
  }

  get waiting(): number {
    return (this.#haveAsked?.size ?? 0) + (this.#waiting?.size ?? 0);
  }

  /** When the store is to be asked again at the latest. */
  get recheckAt(): number {
    return this.#recheckAt;
  }

  get isNotified(): boolean {
    return this.#isNotified;
  }

  /**
   * Whether the next caller here may have the lock before the processes that queue. A candidate may not: a candidate of
   * those processes leads next.
   */
  mayOvertake({ caller }: Lease): boolean {
    return this.#burst < MOST_FENCES && caller.leads !== true;
  }

  /**
   * Whether a call that so shares the key asks the store itself, until the contender's first answer: for a permit, in a
   * process that does not ask for all of them yet. A reader that waits need not ask, since it enters beside the
   * contender.
   */
  mayAskBeside(shares: Shares, waits: boolean): boolean {
    if (this.#lease !== undefined || this.#last !== undefined) {
      return false;
    }
    return shares === 'read' ? !waits : this.waiting === 0 && this.#beside + 1 < shares;
  }

  /** A call asks the store beside the contender. */
  asksBeside(): void {
    this.#beside++;
  }

  /** Where a caller waits until it is the contender, which will hold `lease`; `hasAsked`: beside the contender. */
  behind(lease: Lease, hasAsked: boolean): WaitingLine {
    const waiting = hasAsked ? (this.#haveAsked ??= new Map()) : (this.#waiting ??= new Map());
    return { add: (waiter) => waiting.set(waiter, lease), delete: (waiter) => waiting.delete(waiter) };
  }

  /** The line itself is where the contender waits between two attempts. */
  add(waiter: Waiter): void {
    this.#paused = waiter;
  }

  delete(): void {
    this.#paused = undefined;
  }

  /** The caller that has waited longest. */
  next(): NextCaller | undefined {
    const waiting = this.#haveAsked?.size ? this.#haveAsked : this.#waiting;
    const first = waiting?.size ? waiting.entries().next().value : undefined;
    return first && { waiter: first[0], lease: first[1] };
  }

  /** The contender, while it waits for others to leave, and no attempt of it may still arrive. */
  get idleContender(): NextCaller | undefined {
    const isIdle = this.#paused && this.#last?.outcome === 'busy' && this.#wanted?.isUnanswered === false;
    return isIdle ? { waiter: this.#paused as Waiter, lease: this.#wanted as Lease } : undefined;
  }

  /** Makes a waiter the contender. */
  admit(waiter: Waiter): void {
    this.#before = this.#lease ?? this.#before;
    this.#lease = undefined;
    waiter.admit();
  }

  /**
   * Makes a waiter the contender, with an attempt that is on its way for it, at a new place. The lease before had the
   * lock, so no answer and no notification stands.
   */
  admitWith(waiter: Waiter, place: Place, result: Promise<AttemptResult>, overtakes: boolean): void {
    // A call that does not overtake gets the lock at once only where no other process queues.
    this.#burst = overtakes ? this.#burst + 1 : 1;
    this.#place = place;
    this.#placeShares = undefined;
    this.#result = result;
    this.admit(waiter);
  }

  /** Goes on with a waiter, or with the contender, which the lease of a call before serves. */
  admitServed(waiter: Waiter, granted: AttemptResult): void {
    this.#burst++;
    this.#result = granted;
    this.admit(waiter);
  }

  /** The contender goes on with the answer to its first attempt, which was no grant. */
  goesOnWith(result: AttemptResult): void {
    this.#result = result;
  }

  /** Takes the result that is ready for the contender. Where there is none any more, the contender asks the store. */
  takeResult(): AttemptResult | Promise<AttemptResult> | undefined {
    const result = this.#result;
    this.#result = undefined;
    return result;
  }

  /** The last answer, while it still holds: the caller before gave up, and the process keeps its place. */
  standingAnswer(lease: Lease, now: number): AttemptResult | undefined {
    const stands = this.#place && this.#last?.outcome === 'busy' && !this.#isNotified && now < this.#recheckAt;
    if (!stands || this.wantsOtherwise(lease)) {
      return undefined;
    }
    this.#wanted = lease;
    return this.#last;
  }

  /** Whether its place wants the key in another way than the lease does. */
  wantsOtherwise({ shares }: Lease): boolean {
    return this.#place !== undefined && this.#placeShares !== shares;
  }

  /** Gives up the place. */
  leave(): void {
    this.#place = undefined;
  }

  /** Whether this is the answer that stands. */
  isLastAnswer(result: AttemptResult): boolean {
    return result === this.#last;
  }

  /** The contender asks the store for `lease` itself, at `place` if it may queue. */
  asks(lease: Lease, place: Place | undefined): void {
    this.#wanted = lease;
    this.#beside = 0;
    if (!this.#place) {
      this.#place = place;
      this.#placeShares = lease.shares;
    }
    this.#isNotified = false;
    this.#burst = 1;
  }

  /**
   * How the last attempt ended, and when to ask again unless notified before. A grant uses the place up, also one that
   * is released at once.
   */
  answered(result: AttemptResult, recheckAt: number): void {
    this.#last = result;
    this.#recheckAt = recheckAt;
    if (result.outcome === 'granted' || result.outcome === 'late') {
      this.#place = undefined;
      this.#isNotified = false;
    }
  }

  /** The contender has the lock, and the place is used up, unless the lease of another call serves it. */
  heldBy(lease: Lease, usesPlace: boolean): void {
    this.#lease = lease;
    this.#wanted = undefined;
    if (usesPlace) {
      this.#place = undefined;
      this.#last = undefined;
      this.#isNotified = false;
    }
  }

  /** The store answers again: the contender asks now, if it waits. */
  wake(): void {
    this.#paused?.admit();
  }

  /** The turn may have come: the contender asks now, or again once its attempt is answered. */
  recheck(): void {
    this.#isNotified = true;
    this.#paused?.admit();
  }
}
