import type { Clock } from '../seam/clock.js';
import { leaseDeadline, wallDeadline, type Moment } from '../seam/lease-time.js';

/** The time for which a store has granted a lease: until when it is trusted, by both clocks. */
export class LeaseTerm {
  readonly #clock: Clock;
  #deadline = 0;
  /** When what set the deadline was sent. */
  #sentAt = 0;
  /** What the wall clock read more than the monotonic one then. */
  #wallAheadMs = 0;
  #grantedMs: number;

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

  /** For how long it is trusted; negative where it is not. */
  get remainingMs(): number {
    return Math.min(this.#deadline - this.#clock.monotonic(), this.#wallDeadline - this.#clock.wall());
  }

  get isOver(): boolean {
    return this.#clock.monotonic() >= this.#deadline;
  }

  /** Whether the wall clock is past its end, so that the machine may have slept. */
  get isInDoubt(): boolean {
    return this.#clock.wall() >= this.#wallDeadline;
  }

  /** When what set the deadline was sent, by the wall clock as it is trusted since. */
  get sent(): Moment {
    return { monotonic: this.#sentAt, wall: this.#sentAt + this.#wallAheadMs };
  }

  /** The store granted `ttlMs` from what was sent at `sent` on; a deadline never moves back. */
  extend(sent: Moment, ttlMs: number): void {
    const deadline = leaseDeadline(sent.monotonic, ttlMs);
    const wallAheadMs = sent.wall - sent.monotonic;
    if (deadline > this.#deadline) {
      this.#deadline = deadline;
      this.#sentAt = sent.monotonic;
      this.#wallAheadMs = wallAheadMs;
      this.#grantedMs = ttlMs;
    } else {
      // What a clock that stood still has missed of the lease is gone, though the lock is still there.
      this.#wallAheadMs = Math.min(this.#wallAheadMs, wallAheadMs);
    }
  }

  /** It ends at that moment, if not before. */
  endBy(moment: number): void {
    this.#deadline = Math.min(this.#deadline, moment);
  }

  /** Its deadline by the wall clock, which runs on while the machine sleeps. */
  get #wallDeadline(): number {
    return wallDeadline(this.sent, this.#deadline);
  }
}
