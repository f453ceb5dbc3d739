import type { Lease } from '../leases/lease.js';
import type { Busy } from '../seam/lock-store.js';
import type { Caller } from '../words/caller.js';
import type { LockError } from '../words/errors.js';
import type { Acquisition } from './acquisition.js';

/** Gets what happens to calls on their way into their locks. It only looks. */
export interface EntryEvents {
  queued(lease: Lease, behind: number): void;
  busy(lease: Lease, busy: Busy, waits: boolean): void;
  stillHeld(lease: Lease, by: string, heldMs: number): void;
  attemptFailed(lease: Lease, error: LockError): void;
  reentered(lease: Lease, caller: Caller): void;
  ended(acquisition: Acquisition, refusal: unknown): void;
}
