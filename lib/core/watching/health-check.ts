import { OUTDATED_AFTER_MS, type Availability } from '../seam/availability.js';
import { asLockError } from '../leases/background-releases.js';
import type { Leases } from '../leases/leases.js';
import { isAnswered, isRefusing, reasonsOf, statusOf, type LockHealth } from '../words/lock-health.js';
import type { LockStore } from '../seam/lock-store.js';
import type { Reporter } from './reporter.js';
import type { StoreHealth } from '../words/lock-health.js';
import type { Clock } from '../seam/time.js';
import type { Waiters } from '../entering/waiters.js';

/** What a check of the health looks at. */
export interface HealthCheckParts {
  readonly store: LockStore;
  readonly availability: Availability;
  readonly reporter: Reporter;
  readonly leases: Leases;
  readonly waiters: Waiters;
  readonly clock: Clock;
}

/** Finds out about the health of the locks of one store, and only when it is asked: calls do nothing for it. */
export class HealthCheck {
  readonly #parts: HealthCheckParts;
  /** Since when each check was told that nothing is granted, and when the last one was. */
  #refusingSince: number | undefined;
  #refusedAt = 0;
  #asking: Promise<StoreHealth> | undefined;

  constructor(parts: HealthCheckParts) {
    this.#parts = parts;
  }

  /** Never rejects. A store that does not answer, or grants nothing, is down after `downAfterMs`. */
  async run(downAfterMs: number): Promise<LockHealth> {
    // Checks that are made at the same time are one question to the store.
    const said = await (this.#asking ??= this.#ask().finally(() => (this.#asking = undefined)));
    const { store, availability, leases, waiters } = this.#parts;
    // An old failure of a call says nothing of a store that cannot be asked.
    const unreachableMs = store.health || availability.isAway ? availability.silentMs : undefined;
    const reachable = unreachableMs === undefined && isAnswered(said);
    const reasons = reasonsOf(said, reachable, availability.isAway);
    // Whichever is known for longer: calls fail, or the server said that it grants nothing.
    const refusingMs = Math.max(this.#refusingMs(said), availability.failingMs ?? -1);
    const unusableMs = unreachableMs ?? (refusingMs < 0 ? undefined : refusingMs);
    const { running } = leases;
    const margins = running.map((lease) => lease.marginMs).filter((ms) => ms !== undefined);
    const { latencyMs, hearsTurns, clockSkewMs, replicasConfirm, members, majority, refuses, evicts } = said;
    return withoutUnknown({
      status: statusOf(reasons, unusableMs, downAfterMs),
      reasons,
      reachable,
      unreachableMs: rounded(unreachableMs),
      latencyMs: rounded(latencyMs),
      hearsTurns,
      clockSkewMs: rounded(clockSkewMs),
      replicasConfirm,
      members: members?.map(({ reachable: isThere, voting }) => withoutUnknown({ reachable: isThere, voting })),
      majority,
      refuses,
      heldHere: running.length,
      waitingHere: waiters.count,
      leastMarginMs: margins.length > 0 ? rounded(margins.reduce((least, ms) => Math.min(least, ms))) : undefined,
      evicts,
    });
  }

  /** For how long checks were told that nothing is granted, in milliseconds; -1 where this one was not. */
  #refusingMs(said: StoreHealth): number {
    if (!isRefusing(said)) {
      this.#refusingSince = undefined;
      return -1;
    }
    const now = this.#parts.clock.monotonic();
    if (this.#refusingSince === undefined || now - this.#refusedAt >= OUTDATED_AFTER_MS) {
      this.#refusingSince = now;
    }
    this.#refusedAt = now;
    return now - this.#refusingSince;
  }

  async #ask(): Promise<StoreHealth> {
    const { store, reporter } = this.#parts;
    if (!store.health) {
      return {};
    }
    try {
      const said = await store.health();
      if (isAnswered(said)) {
        reporter.checkAnswered();
      }
      return said;
    } catch (error) {
      reporter.checkFailed(asLockError(error, ''));
      return {};
    }
  }
}

/** Whole milliseconds, and tenths of short times. */
function rounded(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.abs(ms) < 10 ? Math.round(ms * 10) / 10 : Math.round(ms);
}

/** Without the fields that nobody can tell, also for those who do not write JSON. */
function withoutUnknown<T extends object>(known: T): T {
  return Object.fromEntries(Object.entries(known).filter(([, value]) => value !== undefined)) as T;
}
