import type { LockLostError } from '../words/errors.js';
import type { Keeper } from '../calls/call-tree.js';
import type { Lease } from '../leases/lease.js';
import type { Waiter, WaitingLine } from '../calls/waiter.js';

/** The part of its calls that a transaction needs. */
interface LockedCall {
  readonly keys: readonly string[];
  leaseOn(key: string): Lease | undefined;
  notify(loss: LockLostError): void;
}

/**
 * The one call of a transaction that acquires a key, and the calls of the same transaction that wait for its answer.
 */
interface Entering {
  readonly frame: LockedCall;
  readonly waiters: Set<Waiter>;
}

/**
 * A transaction around locked calls, in one store. It keeps the leases of its calls until it has ended: other calls of
 * the transaction enter them, and nobody else does.
 */
export class Transaction implements Keeper {
  readonly identity: object;
  /** The leases that it keeps: two on one key, where one of its calls joined another call by a ticket. */
  readonly #kept = new Set<Lease>();
  /** The first of each key. A transaction may keep thousands, and each of its calls asks. */
  readonly #keptOn = new Map<string, Lease>();
  readonly #entering = new Map<string, Entering>();
  /** The calls of which the code has the signal. */
  readonly #followed = new Set<LockedCall>();
  #loss: LockLostError | undefined;
  #hasEnded = false;

  constructor(identity: object) {
    this.identity = identity;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  get kept(): ReadonlySet<Lease> {
    return this.#kept;
  }

  /** The lease that its calls enter on a key: the first that it kept. */
  keptOn(key: string): Lease | undefined {
    return this.#keptOn.get(key);
  }

  /** The first loss of a lease that it keeps: its calls have to end. */
  get loss(): LockLostError | undefined {
    return this.#loss;
  }

  /**
   * A call of the transaction has all its locks. A lease that was lost before its code began is not kept: the next call
   * acquires its key anew.
   */
  keep(leases: readonly Lease[]): void {
    for (const lease of leases) {
      if (!lease.hasEnded) {
        lease.calls.keepFor(this);
        this.#kept.add(lease);
        this.#keptOn.set(lease.key, this.#keptOn.get(lease.key) ?? lease);
      }
    }
  }

  /** A call of it that is to be notified of losses, also once its code has ended. */
  follow(frame: LockedCall): void {
    this.#followed.add(frame);
  }

  notify(loss: LockLostError): void {
    this.#loss ??= [...this.#kept].find((lease) => lease.key === loss.key && lease.loss)?.loss;
    for (const frame of this.#followed) {
      const lease = frame.leaseOn(loss.key);
      // Another lease on the key may be lost: the lease of a ticket.
      if (lease?.loss === loss || lease?.state === 'overdue') {
        frame.notify(loss);
      }
    }
  }

  /** Where a call waits while another call of the transaction acquires the key; undefined where none does. */
  lineFor(key: string): WaitingLine | undefined {
    const waiters = this.#entering.get(key)?.waiters;
    return waiters && { add: (waiter) => waiters.add(waiter), delete: (waiter) => waiters.delete(waiter) };
  }

  /** A call of it begins to acquire a key that none of its calls has. */
  enters(key: string, frame: LockedCall): void {
    this.#entering.set(key, { frame, waiters: new Set() });
  }

  /** A call of it has its locks, gave up, or begins anew: the others enter by its leases, or acquire in its place. */
  hasEntered(frame: LockedCall): void {
    for (const key of frame.keys) {
      const entering = this.#entering.get(key);
      if (entering?.frame === frame) {
        this.#entering.delete(key);
        [...entering.waiters].forEach((waiter) => waiter.admit());
      }
    }
  }

  /** The transaction has ended, either way. Answers the leases that it kept, the last first. */
  end(): readonly Lease[] {
    this.#hasEnded = true;
    const kept = [...this.#kept].toReversed();
    this.#kept.clear();
    this.#keptOn.clear();
    return kept;
  }
}
