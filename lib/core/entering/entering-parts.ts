import type { Availability } from '../seam/availability.js';
import type { BackgroundReleases } from '../leases/background-releases.js';
import type { Clock } from '../seam/time.js';
import type { Lease } from '../leases/lease.js';
import type { Leases } from '../leases/leases.js';
import type { Lifecycle } from '../seam/lifecycle.js';
import type { Lines } from '../leases/lines.js';
import type { Busy, LockStore } from '../seam/lock-store.js';
import type { Caller } from '../words/caller.js';
import type { LockError } from '../words/errors.js';
import type { Acquisition } from './acquisition.js';
import type { Waiters } from './waiters.js';

export interface EnteringParts {
  readonly store: LockStore;
  readonly clock: Clock;
  readonly lifecycle: Lifecycle;
  readonly lines: Lines;
  readonly leases: Leases;
  readonly releases: BackgroundReleases;
  readonly waiters: Waiters;
  readonly availability: Availability;
  readonly events: EntryEvents;
}

/**
 * Gets the events of calls on their way into their locks. Failures and answers of the store also begin and end outages
 * (`Outages`), which hold calls back.
 */
export interface EntryEvents {
  queued(lease: Lease, behind: number): void;
  busy(lease: Lease, busy: Busy, waits: boolean): void;
  stillHeld(lease: Lease, by: string, heldMs: number): void;
  attemptFailed(lease: Lease, error: LockError): void;
  reentered(lease: Lease, caller: Caller): void;
  ended(acquisition: Acquisition, refusal: unknown): void;
  /**
   * The code of a lost lease has ended after its caller had stopped waiting. `thrown` is the error of the code, unless
   * that is the loss itself.
   */
  endedLate(lease: Lease, thrown: unknown): void;
}
