import { isLockError } from '../../lib/core/words/errors.js';
import type { LockService } from '../../lib/nest/lock.service.js';
import { withKeys } from './hide-keys.js';
import type { ShowKey } from './shown-key.js';
import type { ReleaseAnswer, ReleaseRequest, Snapshot, StoreSnapshot } from './snapshot.js';

/** The stores of the application, as the page shows them. */
export class ApplicationStores {
  readonly #services: ReadonlyMap<string, LockService>;
  readonly #show: ShowKey;

  /** A service that a test has replaced has no stores; one of a second copy of this package has. */
  constructor(service: LockService, show: ShowKey) {
    const { siblings } = service as Partial<LockService>;
    this.#services = siblings instanceof Map ? siblings : new Map<string, LockService>();
    this.#show = show;
  }

  /** Keeps the calls that end from now on, so that the minutes before somebody looked can be shown. */
  record(): void {
    for (const service of this.#services.values()) {
      service.record();
    }
  }

  serviceOf(store: string): LockService | undefined {
    return this.#services.get(store);
  }

  show(key: string): string {
    return this.#show(key);
  }

  /** What the processes of all stores say now. Never rejects: a store that cannot be asked says so. */
  async survey(incidentsMs: number): Promise<Snapshot> {
    const stores = await Promise.all([...this.#services].map(([name, service]) => this.#surveyOf(name, service, incidentsMs)));
    return { kind: 'survey', stores };
  }

  /** Throws `LockStoreError`; undefined where there is no such store, or no lock that is shown by that name. */
  async release({ store, key: named, fence, reason }: ReleaseRequest, by: string): Promise<ReleaseAnswer | undefined> {
    const service = this.#services.get(store);
    const key = service && (await this.#keyOf(service, named));
    if (key === undefined) {
      return undefined;
    }
    if (await service?.forceRelease(key, { fence, by, reason })) {
      return { outcome: 'released' };
    }
    return { outcome: (await service?.inspect(key)) ? 'later' : 'free' };
  }

  async #surveyOf(name: string, service: LockService, incidentsMs: number): Promise<StoreSnapshot> {
    try {
      return withKeys({ ...(await service.survey({ recent: true, health: true, incidentsMs })), failed: undefined }, this.#show);
    } catch (error) {
      const nothing = { processes: [], held: [], waiting: [], ended: [], incidents: [], leftOut: 0, silent: [] };
      return { store: name, ...nothing, failed: isLockError(error) ? error.code : 'The survey failed.' };
    }
  }

  /** The key that is shown by that name: the name itself, unless keys are hidden. */
  async #keyOf(service: LockService, named: string): Promise<string | undefined> {
    if (this.#show('') === '') {
      return named;
    }
    for await (const { key } of service.list({ limit: 100_000 })) {
      if (this.#show(key) === named) {
        return key;
      }
    }
    return undefined;
  }
}
