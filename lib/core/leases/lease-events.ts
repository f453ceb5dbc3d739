import type { CallNode, Keeper } from '../calls/call-tree.js';
import type { CallOptions } from '../words/call-options.js';
import type { LockError, LockLostError } from '../words/errors.js';
import type { Lease } from './lease.js';

/** A call on its way into its locks, as leases see it. */
export interface Entrant {
  readonly call: CallOptions;
  readonly frame: CallNode;
  readonly obtained: readonly Lease[];
  readonly waitedMs: number;
  readonly hasWaited: boolean;
  obtain(lease: Lease): void;
}

/** A transaction, as leases see it. */
export interface LeaseKeeper extends Keeper {
  readonly kept: ReadonlySet<Lease>;
  end(): readonly Lease[];
}

/**
 * Gets the events of leases. Its methods return nothing, and must not throw: their callers do not catch. Failures and
 * answers of the store also begin and end outages (`Outages`), which hold calls back.
 */
export interface LeaseEvents {
  /**
   * The parts that want to learn of successes. Nobody does where this list is empty and `lockChannel` has no
   * subscribers.
   */
  readonly watchers: readonly unknown[];
  acquired(lease: Lease, entrant: Entrant): void;
  /** `margin` is the part of the lease, from 0 to 1, that was left before. */
  renewed(lease: Lease, margin: number): void;
  /** The store answered renewals, of this lease among others. */
  renewalAnswered(lease: Lease): void;
  renewalFailed(lease: Lease, error: LockError): void;
  released(lease: Lease): void;
  releaseFailed(lease: Lease, error: LockError): void;
  lost(lease: Lease, error: LockLostError, kept: boolean): void;
  /** The last call has left a lease that was lost. */
  codeEnded(lease: Lease): void;
}
