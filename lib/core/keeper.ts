import type { LockLostError } from './errors.js';

/** What keeps leases after their calls: a transaction, as calls and leases see it. */
export interface Keeper {
  /** The leases that it keeps, by key. */
  readonly kept: ReadonlyMap<string, object>;
  /** A lease is lost, or about to be. */
  notify(loss: LockLostError): void;
}
