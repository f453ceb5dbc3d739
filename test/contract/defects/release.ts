import { mapBusy, withGrants, type Defect } from './defect';

/** Defects of a store that the rules of this group notice. */
export const DEFECTS_OF_RELEASE: Readonly<Record<string, Defect>> = {
  'does not release': { rule: 'a release frees the lock', change: () => ({ release: async () => true }) },
  'answers the second release with false': {
    rule: 'a release of an unanswered hold that is sent twice answers the same',
    change: (store) => {
      const released = new Set<string>();
      return {
        release: async (hold) => {
          const answer = await store.release(hold);
          const isFirst = !released.has(hold.id);
          released.add(hold.id);
          return answer && isFirst;
        },
      };
    },
  },
  'frees the next lock by a copy of a release': {
    rule: 'a copy of a release, whose hold was answered, does not touch the next owner',
    change: (store) => {
      const released = new Set<string>();
      return {
        release: async (hold) => {
          const { fence } = (await store.operator.inspect(hold.key)) ?? {};
          if (released.has(hold.id) && fence !== undefined) {
            await store.operator.forceRelease(hold.key, fence);
          }
          released.add(hold.id);
          return store.release(hold);
        },
      };
    },
  },
  'releases whoever holds the lock': {
    rule: 'a release of an unanswered hold that is sent twice answers the same, and does not touch the next owner',
    change: (store) => ({
      release: async (hold) => {
        const { fence } = (await store.operator.inspect(hold.key)) ?? {};
        const answer = await store.release(hold);
        await (fence !== undefined && store.operator.forceRelease(hold.key, fence));
        return answer;
      },
    }),
  },
  'answers one of two copies of a release with false': {
    rule: 'two copies of a release of an unanswered hold that arrive at the same time',
    change: (store) => {
      const running = new Set<string>();
      return {
        release: async (hold) => {
          if (running.has(hold.id)) {
            return false;
          }
          running.add(hold.id);
          return store.release(hold).finally(() => running.delete(hold.id));
        },
      };
    },
  },
  'ends the lock of the next owner with a late acquire': {
    rule: 'a late acquire does not disturb the owner that came after it',
    change: (store) =>
      mapBusy(store, async (reply, { key }) => {
        const { fence } = (await store.operator.inspect(key)) ?? {};
        await (reply.holder.by === '' && fence && store.operator.forceRelease(key, fence));
        return reply;
      }),
  },
  'needs the fence for a release': {
    rule: 'a release finds its hold without the fence',
    change: (store) => ({ release: async (hold) => hold.fence > 0 && store.release(hold) }),
  },
  'answers every release with true': {
    rule: 'a release of a hold that was not in answers false',
    change: (store) => ({ release: (hold) => store.release(hold).then(() => true) }),
  },
  'answers the release of another owner with true, and frees nothing': {
    rule: 'a release of another owner, or of another hold',
    change: (store) =>
      withGrants(store, ({ held }) => ({
        release: async (hold) => {
          const mine = held.get(hold.key);
          return (mine !== undefined && mine.owner !== hold.owner) || store.release(hold);
        },
      })),
  },
  'releases for another owner': {
    rule: 'a release of another owner, or of another hold',
    change: (store) =>
      withGrants(store, ({ held }) => ({
        release: async (hold) => {
          const mine = held.get(hold.key);
          return store.release(mine !== undefined && mine.owner !== hold.owner ? mine : hold);
        },
      })),
  },
  'releases by owner': {
    rule: 'a release of another owner, or of another hold',
    change: (store) =>
      withGrants(store, ({ held }) => ({
        release: async (hold) => {
          const mine = held.get(hold.key);
          return store.release(mine?.owner === hold.owner ? mine : hold);
        },
      })),
  },
  'releases all locks of the owner': {
    rule: 'a release concerns its own key only',
    change: (store) =>
      withGrants(store, ({ held }) => ({
        release: async (hold) => {
          const others = [...held.values()].filter(({ owner, key }) => owner === hold.owner && key !== hold.key);
          await Promise.all(others.map((other) => store.release(other)));
          return store.release(hold);
        },
      })),
  },
  'forgets at once what was released': {
    rule: 'an acquire that arrives after its own release is refused',
    change: (store) =>
      mapBusy(store, async (reply, hold) => {
        const isLate = reply.holder.by === '' && (await store.operator.inspect(hold.key)) === null;
        return isLate ? store.acquire({ ...hold, id: `${hold.id} again` }) : reply;
      }),
  },
  'forgets soon what was released': {
    rule: 'an acquire that arrives again after its hold was released',
    change: (store) => {
      const released = new Map<string, number>();
      return {
        release: (hold) => {
          released.set(hold.id, performance.now());
          return store.release(hold);
        },
        acquire: async (hold, place) => {
          const at = released.get(hold.id);
          const isForgotten = at !== undefined && performance.now() - at > 300;
          return store.acquire(isForgotten ? { ...hold, id: `${hold.id} again` } : hold, place);
        },
      };
    },
  },
};
