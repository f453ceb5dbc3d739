import { randomUUID } from 'node:crypto';
import type { Clock } from './clock.js';
import { isAncestor } from './context.js';
import { LockLostError } from './errors.js';
import { commandLimit, leaseDeadline, ttlUntil, wallDeadline, type Moment } from './lease.js';
import type { LockFrame } from './lock-frame.js';
import type { LossCause } from './loss.js';
import type { HoldRecord } from './lock-store.js';
import type { Waiter, WaitingLine } from './waiter.js';

/** What a hold tells of itself to the locks it belongs to. */
export interface HoldKeeper {
  /** The clocks that decide about leases. */
  readonly clock: Clock;
  /** Ends a hold whose lease is no longer to be trusted, and answers the error its callers get. */
  lose(hold: Hold, cause: LossCause): LockLostError;
  /** Resolves when the store has said whether it still has a lock whose lease is doubted, or the lease is lost. */
  settleDoubt(hold: Hold): Promise<void>;
  /** Gives the lock back; the last frame has left. */
  finish(hold: Hold): Promise<void>;
  /** The code of a lost hold has ended after its caller had stopped waiting; `thrown` is its error. */
  endedLate(hold: Hold, thrown: unknown): void;
}

/**
 * This process's entry into a lock by an owner: its lease, and the stack of locked calls inside it.
 *
 * A call enters when the call on top is its ancestor, so that children started in parallel run one after the other.
 */
export class Hold implements HoldRecord {
  readonly keeper: HoldKeeper;
  readonly key: string;
  readonly owner: string;
  readonly by: string;
  /** Whether it entered another's lock by a ticket, and so has no turn in the local queue. */
  readonly joined: boolean;
  /** Whether others may be in the lock as well: it has a ticket. The lock may then live on by a longer lease than this one. */
  shared: boolean;
  id: string = randomUUID();
  fence: number;
  ttlMs: number;
  /** The lease that was granted last, in milliseconds; a nested call may have asked for more since. */
  leaseMs: number;
  limitMs: number;
  acquiredAt = 0;
  /** The moment from which the lease is not trusted any more. */
  deadline = 0;
  /** The same by the wall clock, which runs on while the machine sleeps. */
  wallDeadline = 0;
  /** When the next renewal is due; `Infinity` for a fixed lease. */
  renewAt = Infinity;
  renewing = false;
  /** Whether its code has ended, and `minHold` keeps it. */
  lingering = false;
  /** Whether a renewal found that the store no longer has it. */
  gone = false;
  /** Whether `maxHold` is over and the code was told. */
  overdue = false;
  /** When renewal stops and the code is told. */
  maxHoldAt = Infinity;
  /** Before this moment the lock is not given back. */
  minHoldAt = 0;
  /** Whether it was lost or given back; nothing is left to lose then. */
  ended = false;
  /** What its callers get once the lease is lost. */
  lost: LockLostError | undefined;
  readonly #stack: LockFrame[] = [];
  #entering: Map<Waiter, LockFrame> | undefined;

  constructor(keeper: HoldKeeper, key: string, owner: string, by: string, ttlMs: number, joinedFence?: number) {
    this.keeper = keeper;
    this.key = key;
    this.owner = owner;
    this.by = by;
    this.ttlMs = ttlMs;
    this.leaseMs = ttlMs;
    this.limitMs = commandLimit(ttlMs);
    this.joined = joinedFence !== undefined;
    this.shared = this.joined;
    this.fence = joinedFence ?? 0;
  }

  /** The locked calls inside, outermost first. */
  get frames(): readonly LockFrame[] {
    return this.#stack;
  }

  /** The store confirmed a lease of `ttlMs` that was asked for at `sent`; a deadline never moves back. */
  extend(sent: Moment, ttlMs: number): void {
    const deadline = leaseDeadline(sent.monotonic, ttlMs);
    const wall = wallDeadline(sent, Math.max(deadline, this.deadline));
    if (deadline > this.deadline) {
      this.deadline = deadline;
      this.wallDeadline = wall;
      this.leaseMs = ttlMs;
      this.limitMs = commandLimit(ttlMs);
    } else {
      // What a clock that stood still has missed of the lease is gone, though the lock is still there.
      this.wallDeadline = Math.min(this.wallDeadline, wall);
    }
  }

  /** The lease that ends with `minHold`, in milliseconds. */
  lingerMs(now: number): number {
    return ttlUntil(Math.max(0, this.minHoldAt - now));
  }

  /** The store no longer has it: nothing is trusted from here on. */
  distrust(): void {
    this.gone = true;
    this.deadline = -Infinity;
  }

  /** Whether the lease can be trusted at this moment; has no side effect. */
  isLive(): boolean {
    return !this.ended && this.remainingMs() > 0;
  }

  /** For how long the lease can be trusted; negative where it cannot. */
  remainingMs(): number {
    const { clock } = this.keeper;
    return Math.min(this.deadline - clock.monotonic(), this.wallDeadline - clock.wall());
  }

  /** The error of a lost lease; also tells everybody if the clock knows first. */
  loss(): LockLostError | undefined {
    return this.ended || this.keeper.clock.monotonic() < this.deadline ? this.lost : this.keeper.lose(this, 'expired');
  }

  /** Why a lease that is not lost cannot be trusted now: the wall clock is past its end, so the machine may have slept. */
  doubt(): LockLostError | undefined {
    return this.ended || this.keeper.clock.wall() < this.wallDeadline
      ? undefined
      : new LockLostError(
          `Lock "${this.key}" cannot be trusted at this moment: the wall clock went past the end of its lease, so the machine slept, or its ` +
            'clock was set. Repeat the call; lock.isHeld() is true again once the store has renewed the lease.',
          this.key,
          'expired',
        );
  }

  /** Whether the call may enter now. */
  admits(frame: LockFrame): boolean {
    const top = this.#stack.at(-1);
    return top === undefined || isAncestor(top, frame);
  }

  enter(frame: LockFrame): void {
    this.#stack.push(frame);
  }

  /** Where a call waits until the one on top has left. */
  lineFor(frame: LockFrame): WaitingLine {
    const entering = (this.#entering ??= new Map());
    return { isInside: true, add: (waiter) => entering.set(waiter, frame), delete: (waiter) => entering.delete(waiter) };
  }

  /** Ends the waits for the stack. */
  refuseEntering(error: Error): void {
    for (const waiter of [...(this.#entering?.keys() ?? [])]) {
      waiter.refuse(error);
    }
  }

  /** Takes a call off the stack, wherever it stands: a child may outlive its parent. */
  async leave(frame: LockFrame): Promise<void> {
    const at = this.#stack.lastIndexOf(frame);
    if (at < 0) {
      return;
    }
    this.#stack.splice(at, 1);
    if (this.lost) {
      return;
    }
    for (const [waiter, next] of this.#entering ?? []) {
      if (this.admits(next)) {
        this.enter(next);
        waiter.admit();
        return;
      }
    }
    if (this.#stack.length === 0) {
      await this.keeper.finish(this);
    }
  }
}
