import type { HoldRecord } from '../../../lib/core/seam/lock-store';
import { withGrants, type Defect, type Parts } from './defect';

/** Defects of a store that the rules of this group notice. */
export const DEFECTS_OF_RENEW: Readonly<Record<string, Defect>> = {
  'answers every renewal with true': {
    rule: 'a renewal with another owner, fence or hold is refused',
    change: (store) => ({ renew: (holds) => store.renew(holds).then((answers) => answers.map(() => true)) }),
  },
  'renews for another owner': {
    rule: 'a renewal with another owner, fence or hold is refused',
    change: (store) => renewingAs(store, (mine, asked) => mine.id === asked.id && mine.fence === asked.fence),
  },
  'renews at another fence': {
    rule: 'a renewal with another owner, fence or hold is refused',
    change: (store) => renewingAs(store, (mine, asked) => mine.id === asked.id && mine.owner === asked.owner),
  },
  'renews for another hold of the owner': {
    rule: 'a renewal with another owner, fence or hold is refused',
    change: (store) => renewingAs(store, (mine, asked) => mine.owner === asked.owner && mine.fence === asked.fence),
  },
  'lengthens the lease for a stranger, whom it refuses': {
    rule: 'a renewal with another owner, fence or hold is refused',
    change: (store) =>
      withGrants(store, ({ held }) => ({
        renew: async (holds) => {
          const answers = await store.renew(holds);
          const refused = holds.filter((_, at) => !answers[at]);
          await store.renew(refused.flatMap(({ key, ttlMs }) => (held.has(key) ? [{ ...(held.get(key) as HoldRecord), ttlMs }] : [])));
          return answers;
        },
      })),
  },
  'answers the second renewal with false': {
    rule: 'a renewal of a lock that is held answers true',
    change: (store) => {
      const renewed = new Set<string>();
      return {
        renew: async (holds) => {
          const answers = await store.renew(holds);
          return answers.map((answer, at) => {
            const { id } = holds[at] as HoldRecord;
            const isFirst = !renewed.has(id);
            renewed.add(id);
            return answer === true && isFirst;
          });
        },
      };
    },
  },
  'creates locks by renewal': {
    rule: 'a renewal never creates a lock',
    change: (store) => ({
      renew: async (holds) => {
        const answers = await store.renew(holds);
        await Promise.all(holds.filter((_, at) => !answers[at]).map((hold) => store.acquire({ ...hold, id: `${hold.id} again` })));
        return answers;
      },
    }),
  },
  'renews by fence alone': {
    rule: 'the renewal of a released hold does not renew the next lock',
    change: (store) => renewingAs(store, (mine, asked) => mine.fence === asked.fence),
  },
  'answers renewals in another order': {
    rule: 'renewals of several locks are answered one by one',
    change: (store) => ({ renew: (holds) => store.renew(holds).then((answers) => answers.toReversed()) }),
  },
  'renews a hundred locks at most': {
    rule: 'locks can be renewed at once',
    change: (store) => ({
      renew: async (holds) => {
        const answers = await store.renew(holds.slice(0, 100));
        return holds.map((_, at) => answers[at]);
      },
    }),
  },
};

/** Renews what is held where somebody asks who is like its holder. */
function renewingAs(store: Parts, isLike: (mine: HoldRecord, asked: HoldRecord) => boolean): Partial<Parts> {
  return withGrants(store, ({ held }) => {
    const holderOf = (asked: HoldRecord): HoldRecord => {
      const mine = held.get(asked.key);
      return mine && isLike(mine, asked) ? { ...mine, ttlMs: asked.ttlMs } : asked;
    };
    return { renew: (holds) => store.renew(holds.map(holderOf)) };
  });
}
