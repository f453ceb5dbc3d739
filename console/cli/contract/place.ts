import type { LockStore } from '../../../lib/core/seam/lock-store.js';
import type { StoreOffer } from '../../../lib/contract/index.js';
import type { Finding } from '../doctor/finding.js';

/** A place of its own on the servers, where the contract runs. */
export interface Place {
  /** The object that is made for the run, and removed after it, as a sentence names it. */
  readonly name: string;
  /**
   * The offers of its stores. Where no message arrives, a place may leave messages out, so that nothing waits for them.
   */
  readonly offers: (hears: boolean) => readonly StoreOffer[];
  /** Makes what the stores need. Rejects with what to change where the user may not, and where no server answers. */
  readonly make: () => Promise<void>;
  /** The findings of the servers about themselves. */
  readonly findings: () => Promise<readonly Finding[]>;
  /** A store in this place, as another process would have it; likewise. */
  readonly connect: (hears: boolean) => LockStore | Promise<LockStore>;
  /** Removes what may have been made. */
  readonly remove: () => Promise<void>;
  /** Ends the connections. */
  readonly end: () => Promise<void>;
}
