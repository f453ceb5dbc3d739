import type { Availability } from '../seam/availability.js';
import type { Clock } from '../seam/time.js';
import { asLockError } from '../words/errors.js';
import type { Leases } from '../leases/leases.js';
import { isAnswered, isRefusing, reasonsOf, statusOf, type HealthReason, type LockHealth, type StoreHealth } from '../words/lock-health.js';
import type { Lifecycle } from '../seam/lifecycle.js';
import type { LockStore } from '../seam/lock-store.js';
import type { Reporter } from './reporter.js';
import type { Waiters } from '../entering/waiters.js';

/** For how long a store that refused may be silent, since its client connects anew, in milliseconds. */
const CONNECTS_WITHIN_MS = 1_000;

interface HealthCheckParts {
  readonly clock: Clock;
  readonly store: LockStore;
  readonly lifecycle: Lifecycle;
  readonly availability: Availability;
  readonly reporter: Reporter;
  readonly leases: Leases;
  readonly waiters: Waiters;
}

/** Finds out about the health of the locks of one store, and only when it is asked: calls do nothing for it. */
export class HealthCheck {
  readonly #parts: HealthCheckParts;
  #asking: Promise<StoreHealth> | undefined;
  /** The last answer. */
  #said: StoreHealth = {};
  /** Since when each reason has been there. */
  #since: ReadonlyMap<HealthReason, number> = new Map();

  constructor(parts: HealthCheckParts) {
    this.#parts = parts;
  }

  /** Never rejects. A store that does not answer, or grants nothing, is down after `downAfterMs`. */
  async run(downAfterMs: number): Promise<LockHealth> {
    // Checks that are made at the same time are one question to the store.
    const answer = await (this.#asking ??= this.#ask().finally(() => (this.#asking = undefined)));
    const { store, lifecycle, availability, leases, waiters } = this.#parts;
    // An old failure of a call says nothing of a store that cannot be asked.
    const silentMs = store.health || availability.isAway ? availability.silentMs : undefined;
    const stillRefuses = silentMs !== undefined && silentMs < CONNECTS_WITHIN_MS && isRefusing(this.#said);
    const [said, unreachableMs] = stillRefuses ? [this.#said, undefined] : [answer, silentMs];
    const reachable = unreachableMs === undefined && isAnswered(said);
    const { refusingMs } = availability;
    const reasons = reasonsOf(said, { isReachable: reachable, isFailing: availability.isAway, isClosing: lifecycle.isClosing });
    const { running } = leases;
    const margins = running.map((lease) => lease.marginMs).filter((ms) => ms !== undefined);
    const { server, latencyMs, hearsTurns, clockSkewMs, replicasConfirm, members, majority, refuses, evicts } = said;
    return withoutUnknown({
      // A store that granted nothing, and does not answer now, has granted nothing all the time.
      status: statusOf(reasons, Math.max(unreachableMs ?? -1, refusingMs ?? -1), downAfterMs),
      reasons,
      reachable,
      unreachableMs: rounded(unreachableMs),
      refusingMs: reachable ? rounded(refusingMs) : undefined,
      failure: availability.code,
      reasonMs: this.#lastedMs(reasons),
      server,
      latencyMs: rounded(latencyMs),
      hearsTurns,
      clockSkewMs: rounded(clockSkewMs),
      replicasConfirm,
      members: members?.map(({ reachable: isThere, voting, refuses: why }) => withoutUnknown({ reachable: isThere, voting, refuses: why })),
      majority,
      refuses,
      heldHere: running.length,
      waitingHere: waiters.count,
      leastMarginMs: margins.length > 0 ? rounded(margins.reduce((least, ms) => Math.min(least, ms))) : undefined,
      evicts,
    });
  }

  #lastedMs(reasons: readonly HealthReason[]): LockHealth['reasonMs'] {
    const now = this.#parts.clock.monotonic();
    this.#since = new Map(reasons.map((reason) => [reason, this.#since.get(reason) ?? now]));
    const lasted = [...this.#since].map(([reason, since]) => [reason, Math.round(now - since)]);
    return lasted.length > 0 ? Object.fromEntries(lasted) : undefined;
  }

  async #ask(): Promise<StoreHealth> {
    const { store, lifecycle, availability, reporter } = this.#parts;
    if (!store.health || lifecycle.isClosing) {
      return {};
    }
    try {
      const said = await store.health();
      if (isAnswered(said)) {
        this.#said = said;
        reporter.checkAnswered();
        availability.said(isRefusing(said));
      }
      return said;
    } catch (error) {
      // A store that this application closes meanwhile is no outage.
      if (!lifecycle.isClosing) {
        reporter.checkFailed(asLockError(error, ''));
      }
      return {};
    }
  }
}

/** Whole milliseconds, and tenths of short times. */
function rounded(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.abs(ms) < 10 ? Math.round(ms * 10) / 10 : Math.round(ms);
}

/** Leaves out the fields that nobody can tell, also for users who do not write JSON. */
function withoutUnknown<T extends object>(known: T): T {
  return Object.fromEntries(Object.entries(known).filter(([, value]) => value !== undefined)) as T;
}
