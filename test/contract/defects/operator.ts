import type { StoredLock } from '../../../lib/core/seam/lock-store';
import { mapOperator, mapReplies, mapShown, withGrants, type Defect } from './defect';

/** Defects of a store that the rules of this group notice. */
export const DEFECTS_OF_OPERATOR: Readonly<Record<string, Defect>> = {
  'does not say who runs in the lock now': {
    rule: 'a renewal may say that another call',
    change: (store) => ({ renew: (holds) => store.renew(holds.map((hold) => ({ ...hold, by: '' }))) }),
  },
  'shows a wrong fence': {
    rule: 'inspect shows the fence, the holds',
    change: (store) => mapShown(store, (lock) => ({ ...lock, fence: lock.fence - 1 })),
  },
  'shows a wrong rest of the lease': {
    rule: 'inspect shows what is left',
    change: (store) => mapShown(store, (lock) => ({ ...lock, remainingMs: 0 })),
  },
  'shows the owner': {
    rule: 'inspect shows no owner and no hold',
    change: (store) =>
      withGrants(store, ({ held }) =>
        mapShown(store, (lock, key) => Object.defineProperty({ ...lock }, 'secret', { value: held.get(key)?.owner })),
      ),
  },
  'shows a lock that was released': {
    rule: 'inspect shows nothing of a free lock',
    change: (store) => {
      const shown = new Map<string, StoredLock>();
      return {
        ...mapReplies(store, async (reply, { key }) => {
          const lock = await store.operator.inspect(key);
          if (lock) {
            shown.set(key, lock);
          }
          return reply;
        }),
        ...mapOperator(store, { inspect: async (key) => (await store.operator.inspect(key)) ?? shown.get(key) ?? null }),
      };
    },
  },
  'shows a lock whose lease has ended': {
    rule: 'inspect shows nothing of a lock whose lease has ended',
    change: (store) => {
      const shown = new Map<string, StoredLock>();
      return {
        ...mapReplies(store, async (reply, { key }) => {
          shown.set(key, (await store.operator.inspect(key)) as StoredLock);
          return reply;
        }),
        release: (hold) => {
          shown.delete(hold.key);
          return store.release(hold);
        },
        ...mapOperator(store, { inspect: async (key) => (await store.operator.inspect(key)) ?? shown.get(key) ?? null }),
      };
    },
  },
  'counts one hold only': {
    rule: 'inspect counts the holds',
    change: (store) => mapShown(store, (lock) => ({ ...lock, holds: 1 })),
  },
  'shows nobody who waits': {
    rule: 'inspect shows who waits',
    change: (store) => mapShown(store, (lock) => ({ ...lock, waiters: [] })),
  },
  'releases at any fence': {
    rule: 'a forced release needs the fence',
    change: (store) =>
      mapOperator(store, {
        forceRelease: async (key) => store.operator.forceRelease(key, (await store.operator.inspect(key))?.fence ?? 0),
      }),
  },
  'notifies nobody of a forced release': {
    rule: 'a forced release notifies every process',
    change: (store) => mapOperator(store, { onForced: () => undefined }),
  },
  'notifies everybody but the holder of a forced release': {
    rule: 'a forced release notifies the process',
    change: (store) => mapOperator(store, { onForced: () => undefined }),
  },
  'lets a hold that was forced out release': {
    rule: 'a forced release ends the hold',
    change: (store) => {
      const forced = new Set<string>();
      return {
        ...mapOperator(store, {
          forceRelease: (key, fence) => {
            forced.add(key);
            return store.operator.forceRelease(key, fence);
          },
        }),
        release: async (hold) => (await store.release(hold)) || forced.has(hold.key),
      };
    },
  },
  'does not say that readers are in': {
    rule: 'inspect shows that readers are in',
    change: (store) => mapShown(store, (lock) => ({ ...lock, shares: undefined })),
  },
  'shows one of several readers': {
    rule: 'inspect shows that readers are in',
    change: (store) => mapShown(store, (lock) => ({ ...lock, holds: 1 })),
  },
  'shows the greatest count of a semaphore': {
    rule: 'inspect shows no write as shared, and of a semaphore the smallest count',
    change: (store) => mapShown(store, (lock) => ({ ...lock, ...(lock.shares === 3 && { shares: 5 }) })),
  },
  'shows a write as shared': {
    rule: 'inspect shows no write as shared',
    change: (store) => mapShown(store, (lock) => ({ ...lock, shares: lock.shares ?? 1 })),
  },
  'notifies no reader of a forced release': {
    rule: 'a forced release of readers notifies',
    change: (store) => mapOperator(store, { onForced: () => undefined }),
  },
  'answers every forced release with true': {
    rule: 'a forced release of a free lock answers false',
    change: (store) => mapOperator(store, { forceRelease: (key, fence) => store.operator.forceRelease(key, fence).then(() => true) }),
  },
};
