import { Observable } from 'rxjs';
import type { LockOperations } from '../../lib/nest/lock.operations.js';
import { foundOrphan } from './found-orphan.js';
import type { ShowKey } from './shown-key.js';
import type { FoundOrphan, SearchEnd, SearchStep } from './snapshot.js';

/** How many locks a search looks at, and for how long it lasts, at most. */
const MOST = { locks: 100_000, time: '60s' } as const;
/** How often a search tells how far it is, in milliseconds. */
const STEP_MS = 250;

/**
 * Searches a store for locks whose processes do not answer, as a stream of the locks that were found. The search ends
 * when nobody listens any more: nothing is asked of the store then.
 */
export function searchOrphans(operations: LockOperations, show: ShowKey): Observable<SearchStep> {
  return new Observable((viewer) => {
    let found: FoundOrphan[] = [];
    let looked = 0;
    const tell = (ended?: SearchEnd): void => {
      viewer.next({ kind: 'search', found, looked, ended });
      found = [];
    };
    const search = async (): Promise<void> => {
      const list = operations.list({ limit: MOST.locks, timeout: MOST.time });
      const locks = list[Symbol.asyncIterator]();
      viewer.add(() => void locks.return?.().catch(() => undefined));
      let toldAt = performance.now();
      for (let step = await locks.next(); !step.done; step = await locks.next()) {
        looked++;
        if (!step.value.answers) {
          found.push(foundOrphan(step.value.key, step.value, show));
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
