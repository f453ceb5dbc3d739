import { randomUUID } from 'node:crypto';
import type { CallOptions } from '../words/call-options.js';
import { type Clock, commandLimit, type Moment, momentOf } from '../seam/time.js';
import type { LockHolder, LockNotAcquiredError, NotAcquiredReason } from '../words/errors.js';
import type { Frame } from './frame.js';
import { THIS_PROCESS } from '../words/caller.js';
import type { Cycle, CycleCall } from '../words/cycle-call.js';
import { Lease } from '../leases/lease.js';
import type { Busy } from '../seam/lock-store.js';
import { namesHolder, notAcquired, seenHolder } from './not-acquired.js';
import { Owner } from '../leases/hold.js';
import type { TicketEntry } from '../leases/ticket.js';
import type { Waiter } from '../calls/waiter.js';

const NONE: readonly Lease[] = [];

/** A call on its way into its locks. */
export class Acquisition {
  /** The name under which the store is registered. */
  readonly store: string;
  readonly call: CallOptions;
  readonly frame: Frame;
  readonly started: Moment;
  readonly giveUpAt: number;
  /** When the last attempt has to be answered, whichever of the keys it is for. */
  readonly answerBy: number;
  readonly #clock: Clock;
  #obtained: readonly Lease[] = NONE;
  #owner: Owner | undefined;
  #waitedFor: string | undefined;
  #waitedInside = false;
  #hasEntered = false;
  /** Names the wait for one lock: made when it is asked for. */
  #waitId: string | undefined;
  #waiter: Waiter | undefined;
  #withdrawn: LockNotAcquiredError | undefined;
  #seen: Lease | Busy | undefined;
  #hasAsked = false;
  #cycle: Cycle | undefined;

  constructor(store: string, call: CallOptions, frame: Frame, clock: Clock) {
    this.store = store;
    this.call = call;
    this.frame = frame;
    this.#clock = clock;
    this.started = momentOf(clock);
    this.giveUpAt = this.started.monotonic + call.waitMs;
    this.answerBy = this.giveUpAt + commandLimit(call.ttlMs);
  }

  /** A new lease on a key: by a ticket, or anew, under the owner that holds its other keys. */
  newLease(key: string, ticket?: TicketEntry): Lease {
    const owner = ticket ? new Owner(ticket.secret) : (this.#owner ??= Owner.next());
    return new Lease(this.#clock, key, owner, this.call, ticket);
  }

  get waitedMs(): number {
    return this.#clock.monotonic() - this.started.monotonic;
  }

  /** For how long it may still wait; negative where its time is over. */
  get leftMs(): number {
    return this.giveUpAt - this.#clock.monotonic();
  }

  /** The key that it last had to wait for. */
  get waitedFor(): string | undefined {
    return this.#waitedFor;
  }

  get hasWaited(): boolean {
    return this.#waitedFor !== undefined;
  }

  /** Whether it waited there for another call inside the same lock. */
  get waitedInside(): boolean {
    return this.#waitedInside;
  }

  /**
   * Whether it may have a lock while it waits: a lock of its own, of an enclosing call, or of its transaction, which
   * may take one meanwhile. Only such a call can be waited for in a cycle.
   */
  get isNested(): boolean {
    const { parent, transaction } = this.frame;
    return parent !== undefined || this.#obtained.length > 0 || transaction !== undefined;
  }

  /** Names its wait for one lock: the same from when it begins to wait for it until it has it, or gives up. */
  get waitId(): string {
    return (this.#waitId ??= randomUUID());
  }

  waitsFor(key: string, isInside: boolean, waiter: Waiter): void {
    this.#waitedFor = key;
    this.#waitedInside = isInside;
    this.#waiter = waiter;
  }

  /** The call has the lock that it waited for. */
  hasNext(): void {
    this.#waitId = undefined;
    this.#waiter = undefined;
    this.#withdrawn = undefined;
  }

  /** Ends its wait with an error: at once, or where it asks the store just now, when the answer is no grant. */
  withdraw(error: LockNotAcquiredError): void {
    this.#withdrawn = error;
    this.#waiter?.refuse(error);
  }

  /** The error that its wait ends with. */
  get withdrawn(): LockNotAcquiredError | undefined {
    return this.#withdrawn;
  }

  /** Who had the lock when it last saw one. */
  get holder(): LockHolder | undefined {
    return this.#seen && seenHolder(this.#seen, this.#clock.monotonic()).holder;
  }

  sees(holder: Lease | Busy | undefined): void {
    if (holder && namesHolder(holder)) {
      this.#seen = holder;
    }
  }

  /** Whether it has asked beside the contender of its key, and got no grant. */
  get hasAsked(): boolean {
    return this.#hasAsked;
  }

  askedBeside(): void {
    this.#hasAsked = true;
  }

  get hasEntered(): boolean {
    return this.#hasEntered;
  }

  /** The call has its locks, or `refusal` says why not. */
  ended(refusal: unknown): void {
    this.#hasEntered = refusal === undefined;
  }

  /** The call as one of a cycle: it is inside `lease`, and waits for another key. */
  inCycle({ key: holds, heldMs }: Lease, waitsFor: string): CycleCall {
    const { site } = this.call.caller;
    return { process: THIS_PROCESS, site, holds, heldMs: Math.round(heldMs), waitsFor, waitedMs: Math.round(this.waitedMs) };
  }

  /** The cycle that it was part of, or would have closed. */
  get cycle(): Cycle | undefined {
    return this.#cycle;
  }

  /** The leases that it acquired itself, without those of enclosing calls. */
  get obtained(): readonly Lease[] {
    return this.#obtained;
  }

  obtain(lease: Lease): void {
    this.#obtained = [...this.#obtained, lease];
  }

  /**
   * One of its leases was lost while it waited for the next. The keys are acquired under a new owner: the old leases
   * may serve other calls by now.
   */
  startOver(): void {
    this.#obtained = NONE;
    this.#owner = undefined;
  }

  /** Throws where it would write inside a lock of read mode, `enclosing`: two such calls would wait for each other. */
  refuseUpgrade(enclosing: Lease): void {
    if (this.call.shares === undefined) {
      throw this.refused(enclosing.key, 'upgrade', enclosing);
    }
  }

  /** Why it takes no lock any more, though it was granted: its application shuts down, or its signal has aborted. */
  gaveUp(isClosing: boolean): 'shutdown' | 'aborted' | undefined {
    return isClosing ? 'shutdown' : this.call.signal?.aborted ? 'aborted' : undefined;
  }

  refused(key: string, reason: NotAcquiredReason, holder?: Lease | Busy, cycle?: Cycle): LockNotAcquiredError {
    const { call, frame, waitedMs } = this;
    this.#cycle = cycle;
    const cause: unknown = reason === 'aborted' ? call.signal?.reason : undefined;
    const { waitMs, reentry, caller, shares } = call;
    const now = this.#clock.monotonic();
    return notAcquired({ key, reason, frame, site: caller.site, shares, reentry, waitMs, waitedMs, now, holder, cycle, cause });
  }
}
