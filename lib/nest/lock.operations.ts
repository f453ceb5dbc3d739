import { checkKey } from '../core/words/lock-key.js';
import type { HealthStatus, LockHealth } from '../core/words/lock-health.js';
import type { StoredLock } from '../core/seam/lock-store.js';
import type { Locks } from '../locks.js';
import { withTimes } from '../operate/peers/incident-log.js';
import type { LockList } from '../operate/peers/lock-list.js';
import type { SurveyOptions } from '../operate/peers/roll-call.js';
import type { LockIncident, LockProcess, Survey } from '../operate/peers/survey.js';
import { checkSession, indicationBy, type HealthIndication, type HealthSession } from './health-session.js';
import {
  checkForceRelease,
  downAfterOf,
  limitsOf,
  onlyDuration,
  type ForceReleaseOptions,
  type HealthOptions,
  type IncidentOptions,
  type ListOptions,
} from './lock-operations.options.js';

/** The facts that an operator sees of a held lock. Owner ids are never among them. */
export interface LockInspection extends StoredLock {
  /** Calls of this process that wait for the lock behind another call of this process. */
  readonly waitingHere: number;
}

/** The `LockService` of a store, which finds those of the other stores. */
interface Sibling {
  readonly operations: LockOperations;
  sibling(store: string, site: string): Sibling;
}

/**
 * For operators: looks at locks, and releases one by force. Injectable wherever `LockModule` is imported. Code that
 * locks needs `LockService`.
 */
export class LockOperations {
  readonly #locks: Locks;
  readonly #service: Sibling;

  /** @internal `service` is that of the same store. */
  constructor(locks: Locks, service: Sibling) {
    this.#locks = locks;
    this.#service = service;
  }

  /** The operations of a named store. Throws `LockConfigurationError` for a name that no store has. */
  of(store: string): LockOperations {
    return this.#service.sibling(store, siteOf('of')).operations;
  }

  /** Who holds the key, since when, and at which fence; null where it is free. Throws `LockStoreError`. */
  async inspect(key: string): Promise<LockInspection | null> {
    return this.#locks.inspect(checkKey(key, siteOf('inspect')));
  }

  /**
   * Releases the lock by force, if it is held at the fence that `inspect` showed; false where it is not held at that
   * fence. All who share the key are taken out. For operators: its holders are notified, but until then their code
   * runs beside the next owner's. `by` and `reason` are told in the event `forced`, in the logs of this process and of
   * the holder's, and in `incidents()`.
   */
  async forceRelease(key: string, options: ForceReleaseOptions): Promise<boolean> {
    const site = siteOf('forceRelease');
    checkKey(key, site);
    // The options have to be there, and JavaScript may leave them out.
    checkForceRelease(key, options ?? {}, site);
    return this.#locks.forceRelease(key, options.fence, options);
  }

  /**
   * The locks of all processes that use the store, as they come. First the locks that processes say they hold, the
   * oldest first. Then, unless `scan` is `false`, the other locks that a search of the store finds, such as locks of a
   * process that crashed. `leftOut` of the list says what the list left out.
   *
   * The search looks at every key of the server (of the schema, on PostgreSQL), so it is for operators, and not for a
   * timer. Throws `LockStoreError`, and `LockConfigurationError` for options that are wrong or a user that may not
   * search.
   */
  list(options: ListOptions = {}): LockList {
    return this.#locks.list(limitsOf(options, siteOf('list')));
  }

  /**
   * The processes that use the store and answer within a second, this one first. A process that is stopped, cut off or
   * of an older version is not among them.
   */
  async processes(): Promise<readonly LockProcess[]> {
    return (await this.#locks.survey({ health: true })).processes;
  }

  /**
   * The incidents of the last 24 hours, or since `since` ago, of all processes that answer within a second: losses,
   * forced releases, deadlocks, refusals, failed releases, and outages of the store. The last one comes first. Each
   * process keeps 500 incidents at most, and those of a process that has ended are gone with it. Throws
   * `LockConfigurationError` for options that are wrong.
   */
  async incidents(options: IncidentOptions = {}): Promise<readonly LockIncident[]> {
    const incidentsMs = onlyDuration(siteOf('incidents'), options, 'since', '24h', 1);
    const askedAt = Date.now();
    return withTimes((await this.#locks.survey({ incidentsMs })).incidents, askedAt);
  }

  /** @internal Collects the answers of all processes that use the store. */
  survey(options: SurveyOptions): Promise<Survey> {
    return this.#locks.survey(options);
  }

  /** @internal Keeps the calls that end from now on, for surveys. */
  record(): void {
    this.#locks.record();
  }

  /**
   * Whether locks work, as this process sees it, and why not. Asks the store one cheap question, which takes a second
   * at most. Never throws because of the store; throws `LockConfigurationError` for options that are wrong.
   *
   * It is for readiness. Never let a liveness probe depend on it: a restart mends no store, and drops the locks that
   * are held.
   */
  async health(options: HealthOptions = {}): Promise<LockHealth> {
    return this.#locks.health(downAfterOf(options, siteOf('health')));
  }

  /**
   * The result of `health()` for a readiness check of `@nestjs/terminus`, 11 or 12, with the session that
   * `HealthIndicatorService.check('locks')` gives. Terminus 11 knows no `degraded`, which is `up` there, with
   * `degraded: true`. Throws `LockConfigurationError` for anything but a session.
   */
  async indicate<Session extends HealthSession>(
    session: Session,
    options: HealthOptions = {},
  ): Promise<HealthIndication<Session extends { readonly degraded: unknown } ? HealthStatus : 'up' | 'down'>> {
    checkSession(session);
    const health = await this.#locks.health(downAfterOf(options, siteOf('indicate')));
    return indicationBy(session, health) as HealthIndication<never>;
  }
}

function siteOf(method: string): string {
  return `LockOperations.${method}`;
}
