import type { LockLostError } from './errors.js';

/** What keeps leases after their calls: a transaction, as calls and leases see it. */
export interface Keeper {
  /** The leases that it keeps. */
  readonly kept: ReadonlySet<{ readonly key: string }>;
  /** A lease is lost, or about to be. */
  notify(loss: LockLostError): void;
}
