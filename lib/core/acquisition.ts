import type { Call } from './call.js';
import type { Clock } from './clock.js';
import type { LockHolder, LockNotAcquiredError, NotAcquiredReason } from './errors.js';
import type { CallNode } from './call-tree.js';
import type { Lease } from './lease.js';
import { commandLimit } from './lease-time.js';
import type { Busy } from './lock-store.js';
import { namesHolder, notAcquired, seenHolder } from './not-acquired.js';
import { Owner } from './owner.js';
import { TracedWait } from './traced-wait.js';

/** A call on its way into its locks. */
export class Acquisition<Frame extends CallNode = CallNode> {
  /** The name under which the store is registered. */
  readonly store: string;
  readonly call: Call;
  readonly frame: Frame;
  readonly giveUpAt: number;
  /** When the last attempt has to be answered, whichever of the keys it is for. */
  readonly answerBy: number;
  readonly #clock: Clock;
  readonly #startedAt: number;
  readonly #obtained: Lease[] = [];
  #owner: Owner | undefined;
  #waitedFor: string | undefined;
  #waitedInside = false;
  #seen: Lease | Busy | undefined;
  #trace: TracedWait | undefined;
  #cycle: readonly string[] | undefined;

  constructor(store: string, call: Call, frame: Frame, clock: Clock) {
    this.store = store;
    this.call = call;
    this.frame = frame;
    this.#clock = clock;
    this.#startedAt = clock.monotonic();
    this.giveUpAt = this.#startedAt + call.waitMs;
    this.answerBy = this.giveUpAt + commandLimit(call.ttlMs);
  }

  /** Made for the first key that is acquired anew; a re-entry needs none. */
  newOwner(): Owner {
    return (this.#owner ??= new Owner());
  }

  get waitedMs(): number {
    return this.#clock.monotonic() - this.#startedAt;
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

  waitsFor(key: string, isInside: boolean): void {
    this.#waitedFor = key;
    this.#waitedInside = isInside;
    this.#trace ??= TracedWait.begin(this.store, key, this.call.caller);
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

  /** It has its locks, or `refusal` says why not. */
  ended(refusal: unknown): void {
    this.#trace?.end(refusal, this.#obtained[0]?.fence);
  }

  /** The keys of the cycle that it would have closed. */
  get cycle(): readonly string[] | undefined {
    return this.#cycle;
  }

  /** What it acquired itself, and did not find held by an enclosing call. */
  get obtained(): readonly Lease[] {
    return this.#obtained;
  }

  obtain(lease: Lease): void {
    this.#obtained.push(lease);
  }

  /**
   * One of its leases was lost while it waited for the next: all are taken anew, by another owner. The others may serve
   * further calls as the first one's, which must not enter them as its own.
   */
  startOver(): void {
    this.#obtained.length = 0;
    this.#owner = undefined;
  }

  /** The error of a call that gives up. */
  refused(key: string, reason: NotAcquiredReason, holder?: Lease | Busy, cycle?: readonly string[]): LockNotAcquiredError {
    const { call, frame, waitedMs } = this;
    this.#cycle = cycle;
    const cause: unknown = reason === 'aborted' ? call.signal?.reason : undefined;
    return notAcquired({ key, reason, frame, waitMs: call.waitMs, waitedMs, now: this.#clock.monotonic(), holder, cycle, cause });
  }
}
