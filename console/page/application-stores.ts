import { isLockError } from '../../lib/core/words/errors.js';
import type { LockInspection, LockOperations } from '../../lib/nest/lock.operations.js';
import type { LockService } from '../../lib/nest/lock.service.js';
import { finite, foundOrphan } from './found-orphan.js';
import { withKeys } from './hide-keys.js';
import type { ShowKey } from './shown-key.js';
import type { Survey } from '../../lib/operate/peers/survey.js';
import type { FoundOrphan, ReleaseAnswer, ReleaseRequest, StoreAnswer, StoredLockInfo } from './snapshot.js';

/**
 * How many locks that nobody answers for are inspected in a survey, and how long a call has to have waited for such a
 * lock, in milliseconds.
 */
const MOST_INSPECTED = 20;
const LONG_WAIT_MS = 2_000;

/** The stores of the application, as the page shows them. */
export class ApplicationStores {
  readonly #operations: ReadonlyMap<string, LockOperations>;
  readonly show: ShowKey;

  /** A service that a test has replaced has no stores; one of a second copy of this package has. */
  constructor(service: LockService, show: ShowKey) {
    const { siblings } = service as Partial<LockService>;
    const services = siblings instanceof Map ? [...(siblings as ReadonlyMap<string, LockService>)] : [];
    this.#operations = new Map(services.map(([name, each]) => [name, each.operations]));
    this.show = show;
  }

  /** Keeps the calls that end from now on, so that the minutes before somebody looked can be shown. */
  record(): void {
    for (const operations of this.#operations.values()) {
      operations.record();
    }
  }

  operationsOf(store: string): LockOperations | undefined {
    return this.#operations.get(store);
  }

  /** The surveys of all stores by their processes now. Never rejects: a store that cannot be asked says so. */
  survey(incidentsMs: number): Promise<StoreAnswer[]> {
    return Promise.all([...this.#operations].map(([name, operations]) => this.#surveyOf(name, operations, incidentsMs)));
  }

  /** Throws `LockStoreError`; undefined where there is no such store, or no lock that is shown by that name. */
  async release({ store, key: named, fence, reason }: ReleaseRequest, by: string): Promise<ReleaseAnswer | undefined> {
    const operations = this.#operations.get(store);
    const key = operations && (await this.#keyOf(operations, named));
    if (key === undefined) {
      return undefined;
    }
    if (await operations?.forceRelease(key, { fence, by, reason })) {
      return { outcome: 'released' };
    }
    return { outcome: (await operations?.inspect(key)) ? 'later' : 'free' };
  }

  async #surveyOf(name: string, operations: LockOperations, incidentsMs: number): Promise<StoreAnswer> {
    try {
      const survey = await operations.survey({ recent: true, health: true, incidentsMs });
      return withKeys({ ...survey, failed: undefined, orphans: await this.#orphansOf(operations, survey) }, this.show);
    } catch (error) {
      const nothing = { processes: [], held: [], waiting: [], ended: [], incidents: [], leftOut: 0, silent: [], orphans: [] };
      return { store: name, ...nothing, failed: isLockError(error) ? error.code : 'The survey failed.' };
    }
  }

  /**
   * The store's facts of a lock; null where nobody holds it. Throws `LockStoreError` and `LockKeyError`; undefined
   * where there is no such store.
   */
  async inspect(store: string, key: string): Promise<StoredLockInfo | null | undefined> {
    const operations = this.#operations.get(store);
    const lock = operations && (await operations.inspect(key));
    return lock && infoOf(lock);
  }

  /**
   * The locks that calls have waited for a while, and no process says that it holds: the process of the holder crashed,
   * hangs, or does not answer.
   */
  async #orphansOf(operations: LockOperations, { held, waiting }: Survey): Promise<FoundOrphan[]> {
    const keys = new Set(waiting.filter(({ waitedMs }) => waitedMs >= LONG_WAIT_MS).map(({ key }) => key));
    for (const { key } of held) {
      keys.delete(key);
    }
    const locks = await Promise.all([...keys].slice(0, MOST_INSPECTED).map((key) => this.#orphan(operations, key)));
    return locks.filter((lock) => lock !== undefined);
  }

  async #orphan(operations: LockOperations, key: string): Promise<FoundOrphan | undefined> {
    const lock = await operations.inspect(key).catch(() => null);
    return lock ? foundOrphan(key, lock, this.show) : undefined;
  }

  /** The key that is shown by that name: the name itself, unless keys are hidden. */
  async #keyOf(operations: LockOperations, named: string): Promise<string | undefined> {
    if (this.show('') === '') {
      return named;
    }
    for await (const { key } of operations.list({ limit: 100_000 })) {
      if (this.show(key) === named) {
        return key;
      }
    }
    return undefined;
  }
}

function infoOf({ fence, by, since, remainingMs, holds, shares, waiters }: LockInspection): StoredLockInfo {
  return { fence, by, heldMs: Math.max(0, Date.now() - since.getTime()), remainingMs: finite(remainingMs), holds, shares, waiters };
}
