import { mapBusy, mapGrants, mapHolds, withGrants, type Defect } from './defect';

/** Defects of a store that the rules of this group notice. */
export const DEFECTS_OF_LEASES: Readonly<Record<string, Defect>> = {
  'has leases without an end': {
    rule: 'a lease ends by itself',
    change: (store) => mapHolds(store, (hold) => ({ ...hold, ttlMs: 1e9 })),
  },
  'has leases of a third': {
    rule: 'a lock stays taken until its lease ends',
    change: (store) => mapHolds(store, (hold) => ({ ...hold, ttlMs: hold.ttlMs / 3 })),
  },
  'says a wrong rest of the lease': {
    rule: 'a busy answer says what is left of the lease',
    change: (store) => mapBusy(store, (reply) => ({ ...reply, remainingMs: 0 })),
  },
  'says that the whole lease is left': {
    rule: 'a busy answer says what is left of the lease',
    change: (store) => mapBusy(store, (reply) => ({ ...reply, remainingMs: 3_000 })),
  },
  'lets the owner of an ended lease release the next one': {
    rule: 'a lock whose lease has ended belongs to the next owner',
    change: (store) => {
      const seen = new Set<string>();
      return {
        acquire: (hold, place) => {
          seen.add(hold.id);
          return store.acquire(hold, place);
        },
        release: async (hold) => {
          const answer = await store.release(hold);
          return answer || seen.has(hold.id);
        },
      };
    },
  },
  'does not lengthen by a repeated acquire': {
    rule: 'an acquire that is sent again has a whole lease',
    change: (store) =>
      withGrants(store, ({ acquire, held }) => ({
        acquire: async (hold, place) => {
          const mine = held.get(hold.key);
          return mine?.id === hold.id && (await store.operator.inspect(hold.key))?.fence === mine.fence
            ? { fence: mine.fence }
            : acquire(hold, place);
        },
      })),
  },
  'shortens by a repeated acquire': {
    rule: 'an acquire that is sent again has a whole lease from then on, and never a shorter one',
    change: (store) =>
      mapGrants(store, async (fence, hold) => {
        await store.renew([{ ...hold, fence, lingering: true }]);
        return fence;
      }),
  },
  'does not lengthen by renewal': {
    rule: 'a renewal makes the lease longer',
    change: (store) => ({ renew: (holds) => store.renew(holds.map((hold) => ({ ...hold, ttlMs: 1 }))) }),
  },
  'shortens by renewal': {
    rule: 'a renewal makes the lease longer, and never shorter',
    change: (store) => ({ renew: (holds) => store.renew(holds.map((hold) => ({ ...hold, lingering: true }))) }),
  },
  'lengthens by a renewal that it refuses': {
    rule: 'a renewal that is refused does not make the lease longer',
    change: (store) =>
      withGrants(store, ({ held }) => ({
        renew: async (holds) => {
          const current = holds.map((hold) => ({ ...(held.get(hold.key) ?? hold), ttlMs: hold.ttlMs }));
          const answers = await store.renew(holds);
          await store.renew(current);
          return answers;
        },
      })),
  },
  'cuts a lease for whoever finds it busy': {
    rule: 'a lease that was made longer stays so',
    change: (store) =>
      withGrants(store, ({ acquire, held }) =>
        mapBusy({ ...store, acquire }, async (reply, { key }) => {
          const current = held.get(key);
          await (current && store.renew([{ ...current, lingering: true }]));
          return reply;
        }),
      ),
  },
  'knows no lingering': {
    rule: 'the renewal of a hold that lingers makes the lease end',
    change: (store) => ({ renew: (holds) => store.renew(holds.map((hold) => ({ ...hold, lingering: false }))) }),
  },
  'ends the lease of others with a hold that lingers': {
    rule: 'the renewal of a hold that lingers leaves the lease as it is while other holds',
    change: (store) => mapBusy(store, (reply) => (reply.remainingMs < 3_500 ? reply : { ...reply, remainingMs: 3_000 })),
  },
  'shortens the lease with the end of a guest': {
    rule: 'the end of a guest leaves the lease as it is',
    change: (store) =>
      withGrants(store, ({ held }) => ({
        release: async (hold) => {
          const answer = await store.release(hold);
          const owner = held.get(hold.key);
          await (owner && owner.id !== hold.id && store.renew([{ ...owner, lingering: true }]));
          return answer;
        },
      })),
  },
  'does not lengthen by a join': {
    rule: 'a join never makes the lease shorter, and may make it longer',
    change: (store) => ({ tickets: { join: (hold) => store.tickets.join({ ...hold, ttlMs: 1 }) } }),
  },
};
