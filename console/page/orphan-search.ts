import { Observable } from 'rxjs';
import type { ListedLock } from '../../lib/peers/lock-list.js';
import type { LockService } from '../../lib/nest/lock.service.js';
import type { FoundOrphan, SearchEnd, SearchStep } from './snapshot.js';

/** How many locks a search looks at, and for how long it lasts, at most. */
const MOST = { locks: 100_000, time: '60s' } as const;
/** How often a search tells how far it is, in milliseconds. */
const STEP_MS = 250;

/**
 * Searches a store for locks whose processes do not answer, as a stream of what was found. It ends where nobody listens any more: nothing is
 * asked of the store then.
 */
export function searchOrphans(service: LockService, show: (key: string) => string): Observable<SearchStep> {
  return new Observable((viewer) => {
    let found: FoundOrphan[] = [];
    let looked = 0;
    const tell = (ended?: SearchEnd): void => {
      viewer.next({ kind: 'search', found, looked, ended });
      found = [];
    };
    const search = async (): Promise<void> => {
      const list = service.list({ limit: MOST.locks, timeout: MOST.time });
      const locks = list[Symbol.asyncIterator]();
      viewer.add(() => void locks.return?.().catch(() => undefined));
      let toldAt = performance.now();
      for (let step = await locks.next(); !step.done; step = await locks.next()) {
        looked++;
        if (!step.value.answers) {
          found.push(orphanOf(step.value, show));
        }
        if (performance.now() - toldAt >= STEP_MS) {
          tell();
          toldAt = performance.now();
        }
      }
      tell(list.leftOut.unsearched || list.leftOut.limited ? 'partly' : 'complete');
    };
    void search()
      .catch(() => tell('failed'))
      .finally(() => viewer.complete());
  });
}

function orphanOf({ key, fence, by, since, remainingMs }: ListedLock, show: (key: string) => string): FoundOrphan {
  return { key: show(key), fence, by, since: since.getTime(), remainingMs: Number.isFinite(remainingMs) ? remainingMs : undefined };
}
