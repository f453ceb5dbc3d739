import type { LockStore } from '../../../lib/core/seam/lock-store.js';
import type { Finding } from '../doctor/finding.js';

/** A store, and what belongs to its servers. */
export interface NewStore {
  readonly store: LockStore;
  /** The findings of each server: its settings, and whether it takes writes. */
  readonly findings: (prefix: string) => Promise<readonly Finding[]>;
  /** Ends what the store does not close. */
  readonly end: () => Promise<void>;
}
