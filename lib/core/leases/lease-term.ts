import { type Clock, leaseDeadline, LONGEST_COMMAND_MS, type Moment, wallDeadline } from '../seam/time.js';

/** The time for which a store has granted a lease: until when it is trusted, by both clocks, and when it is renewed. */
export class LeaseTerm {
  readonly #clock: Clock;
  #deadline = 0;
  /** When the command that set the deadline was sent. */
  #sentAt = 0;
  /** Wall clock minus monotonic clock when the deadline was set, in ms. */
  #wallAheadMs = 0;
  #grantedMs: number;
  #maxHoldAt = Infinity;
  #minHoldAt = 0;
  /** Whether its code has ended, and `minHold` keeps it. */
  #lingers = false;
  /** When the next renewal is due; `Infinity` for a lease that is not renewed. */
  #renewAt = Infinity;
  #isRenewing = false;

  /** `ttlMs` counts as granted until something is. */
  constructor(clock: Clock, ttlMs: number) {
    this.#clock = clock;
    this.#grantedMs = ttlMs;
  }

  /** The lease that was granted last, in milliseconds. */
  get grantedMs(): number {
    return this.#grantedMs;
  }

  /** The moment from which it is not trusted any more. */
  get deadline(): number {
    return this.#deadline;
  }

  get minHoldAt(): number {
    return this.#minHoldAt;
  }

  get renewAt(): number {
    return this.#renewAt;
  }

  get isRenewed(): boolean {
    return this.#renewAt < Infinity;
  }

  get isRenewing(): boolean {
    return this.#isRenewing;
  }

  /** For how long it is trusted; negative where it is not. */
  get remainingMs(): number {
    return Math.min(this.#deadline - this.#clock.monotonic(), wallDeadline(this.#deadline, this.#wallAheadMs) - this.#clock.wall());
  }

  get isOver(): boolean {
    return this.#deadline < Infinity && this.#clock.monotonic() >= this.#deadline;
  }

  /** Whether the wall clock is past its end, so that the machine may have slept. */
  get isInDoubt(): boolean {
    return this.#deadline < Infinity && this.#clock.wall() >= wallDeadline(this.#deadline, this.#wallAheadMs);
  }

  /** When the command that set the deadline was sent, by the wall clock as it is trusted since. */
  get sent(): Moment {
    return { monotonic: this.#sentAt, wall: this.#sentAt + this.#wallAheadMs };
  }

  /** The store granted `ttlMs` from `sent` on, when the command was sent; a deadline never moves back. */
  extend(sent: Moment, ttlMs: number): void {
    const deadline = leaseDeadline(sent.monotonic, ttlMs);
    const wallAheadMs = sent.wall - sent.monotonic;
    if (deadline > this.#deadline) {
      this.#deadline = deadline;
      this.#sentAt = sent.monotonic;
      this.#wallAheadMs = wallAheadMs;
      this.#grantedMs = ttlMs;
    } else {
      // A clock that stood still has missed a part of the lease. The part is gone, though the lock is still there.
      this.#wallAheadMs = Math.min(this.#wallAheadMs, wallAheadMs);
    }
  }

  endBy(moment: number): void {
    this.#deadline = Math.min(this.#deadline, moment);
  }

  /** From now on `maxHold` and `minHold` count. */
  limitHold(maxHoldMs: number, minHoldMs: number): void {
    const now = this.#clock.monotonic();
    this.#maxHoldAt = now + maxHoldMs;
    this.#minHoldAt = now + minHoldMs;
  }

  /** `maxHold` is over: it is renewed no more, and ends `ttlMs` later where leases do not end by time. */
  overdue(now: number, ttlMs: number): void {
    this.#maxHoldAt = Infinity;
    this.#renewAt = Infinity;
    this.endBy(now + ttlMs);
  }

  /** The code of the lease has ended: one renewal makes the lease end with `minHold`. */
  linger(): void {
    this.#lingers = true;
    this.#maxHoldAt = Infinity;
    this.#renewAt = this.#clock.monotonic();
  }

  gone(): void {
    this.#lingers = false;
    this.endBy(-Infinity);
  }

  /** Whether the lease is renewed from now on. */
  setRenewed(isRenewed: boolean, now: number): void {
    this.#renewAt = isRenewed ? this.#nextRenewal(now) : Infinity;
  }

  /** When there is something to do: a renewal to send, or the code to notify. */
  get dueAt(): number {
    return Math.min(this.#isRenewing ? Infinity : this.#renewAt, this.notifyAt);
  }

  /**
   * When the code is to be notified. Code that has ended loses nothing with the lease, unless the lock went before
   * `minHold` was over.
   */
  get notifyAt(): number {
    return this.#lingers ? Infinity : Math.min(this.#deadline, this.#maxHoldAt);
  }

  /** Whether to renew it now, or nearly; after a jump of the wall clock, whether there is a lease to confirm. */
  needsRenewal(now: number, hasJumped: boolean): boolean {
    // A lease whose maxHold is over is not renewed, also where its code could not be notified yet.
    const isKept = now < this.#deadline && now < this.#maxHoldAt;
    return isKept && !this.#isRenewing && (hasJumped ? this.#deadline < Infinity : this.#renewAt - this.#grantedMs / 30 <= now);
  }

  /** Whether a renewal is on its way. */
  setRenewing(isRenewing: boolean): void {
    this.#isRenewing = isRenewing;
  }

  /**
   * A renewal that asked for `ttlMs` at `sent` was answered; `held` is false where the outcome is unknown. `knew` says
   * whether the store has been told that the code has ended.
   */
  renewed(held: boolean, knew: boolean, sent: Moment, ttlMs: number): void {
    const now = this.#clock.monotonic();
    if (held) {
      this.extend(sent, ttlMs);
    }
    if (this.#lingers && !knew) {
      // The code of the lease ended meanwhile, and the store does not know yet.
      this.#renewAt = now;
    } else if (this.#renewAt < Infinity) {
      // An unknown outcome moves nothing: the old deadline stands, and the renewal is repeated before it.
      this.#renewAt = held ? this.#nextRenewal(now) : now + Math.min(this.#grantedMs / 10, LONGEST_COMMAND_MS);
    }
    if (held && this.isRenewed && this.isInDoubt) {
      // The renewal was sent before the wall clock jumped: the store has to confirm the lease again.
      this.#renewAt = now;
    }
  }

  /**
   * When two thirds of the lease that was granted are left, or a little more, so that processes that started together
   * drift apart; at once where the grant took long. For `minHold`, once.
   */
  #nextRenewal(now: number): number {
    if (this.#lingers) {
      return this.#deadline < this.#minHoldAt ? now : Infinity;
    }
    return Math.max(now, this.#deadline - (this.#grantedMs / 3) * (2 + Math.random() / 10));
  }
}
