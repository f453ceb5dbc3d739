import { isGrant, withGrants, type Defect } from './defect';

/** Defects of a store that the rules of this group notice. */
export const DEFECTS_OF_TICKETS: Readonly<Record<string, Defect>> = {
  'does not count guests': {
    rule: 'a join from another process adds a hold',
    change: () => ({ tickets: { join: async () => true } }),
  },
  'frees the lock with its guest': {
    rule: 'a guest that leaves first leaves the lock',
    change: (store) =>
      withGrants(store, ({ held }) => ({
        release: async (hold) => {
          const answer = await store.release(hold);
          const owner = held.get(hold.key);
          await (owner && owner.owner === hold.owner && store.release(owner));
          return answer;
        },
      })),
  },
  'counts each copy of a join': {
    rule: 'a join that is sent twice is one hold',
    change: (store) => {
      let copies = 0;
      return {
        tickets: {
          join: async (hold) => (await store.tickets.join(hold)) && store.tickets.join({ ...hold, id: `${hold.id} ${copies++}` }),
        },
      };
    },
  },
  'lets anybody join': {
    rule: 'a join with another owner or fence is refused',
    change: (store) =>
      withGrants(store, ({ held }) => ({
        tickets: { join: (hold) => store.tickets.join({ ...hold, ...held.get(hold.key), id: hold.id }) },
      })),
  },
  'creates a lock by a join': {
    rule: 'a join of a lock that has ended is refused',
    change: (store) => ({
      tickets: {
        join: async (hold) => (await store.tickets.join(hold)) || isGrant(await store.acquire({ ...hold, id: `${hold.id} new` })),
      },
    }),
  },
  'lets a guest in that has left': {
    rule: 'a join that arrives after its own release',
    change: (store) => ({
      tickets: { join: async (hold) => (await store.tickets.join(hold)) || store.tickets.join({ ...hold, id: `${hold.id} again` }) },
    }),
  },
  'lets a guest share the lease of its reader': {
    rule: 'a join of a reader adds one beside it',
    change: (store) =>
      withGrants(store, ({ held }) => ({
        tickets: { join: async (hold) => (hold.shares === 'read' ? held.get(hold.key)?.owner === hold.owner : store.tickets.join(hold)) },
      })),
  },
  'refuses the guests of a reader': {
    rule: 'a join of a reader adds one beside it',
    change: (store) => ({ tickets: { join: async (hold) => hold.shares === undefined && store.tickets.join(hold) } }),
  },
  'rejects a hold too many with any error': {
    rule: 'a lock takes 1000 holds and no more',
    change: (store) => ({
      tickets: {
        join: (hold) =>
          store.tickets.join(hold).catch(() => {
            throw new TypeError('full');
          }),
      },
    }),
  },
};
