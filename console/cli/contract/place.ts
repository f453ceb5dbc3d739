import type { LockStore } from '../../../lib/core/seam/lock-store.js';
import type { StoreOffer } from '../../../lib/store-contract/index.js';
import type { Finding } from '../doctor/finding.js';

/** A place of its own on the servers, where the contract runs. */
export interface Place {
  /** What is made for the run, and removed after it, as a sentence names it. */
  readonly name: string;
  /** What its stores offer, and what they do where no message arrives, so that they do not wait for any. */
  readonly offers: (hears: boolean) => readonly StoreOffer[];
  /** Makes what the stores need. Rejects with what to change where the user may not, and where no server answers. */
  readonly make: () => Promise<void>;
  /** What the servers say of themselves. */
  readonly findings: () => Promise<readonly Finding[]>;
  /** A store in this place, as another process would have it; likewise. */
  readonly connect: (hears: boolean) => LockStore | Promise<LockStore>;
  /** Removes what may have been made. */
  readonly remove: () => Promise<void>;
  /** Ends the connections. */
  readonly end: () => Promise<void>;
}
