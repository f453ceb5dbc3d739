import { mapGrants, mapOperator, type Defect } from './defect';

/** Defects of a store that the rules of this group notice. */
export const DEFECTS_OF_FENCES: Readonly<Record<string, Defect>> = {
  'has falling fences': { rule: 'fences rise with every grant', change: (store) => mapGrants(store, (fence) => 9e15 - fence) },
  'forgets the fence with the lease': {
    rule: 'fences rise over the end of a lease',
    change: (store) => {
      let last = 0;
      let endsAt = 0;
      return mapGrants(store, (_fence, { ttlMs }) => {
        last = performance.now() > endsAt ? 1 : last + 1;
        endsAt = performance.now() + ttlMs;
        return last;
      });
    },
  },
  'reserves one fence only': {
    rule: 'a grant reserves as many fences',
    change: (store) => {
      let last = 0;
      return mapGrants(store, () => ++last);
    },
  },
  'forgets the fences when it is closed': {
    rule: 'fences rise over a store that is closed',
    change: (store) => {
      let last = 0;
      return {
        ...mapGrants(store, () => ++last),
        close: async () => {
          last = 0;
          await store.close();
        },
      };
    },
  },
  'forgets the fence by a forced release': {
    rule: 'fences rise over a forced release',
    change: (store) => {
      let back = 0;
      return {
        ...mapGrants(store, (fence) => fence - back),
        ...mapOperator(store, {
          forceRelease: (key, fence) => {
            back = 1e9;
            return store.operator.forceRelease(key, fence);
          },
        }),
      };
    },
  },
};
