import type { HoldRecord, TurnListener } from '../../../lib/core/seam/lock-store';
import { BUSY, isGrant, mapBusy, mapFree, mapGrants, mapOperator, mapOrder, mapTurns, withPlaces, type Defect } from './defect';

/** A place that leaves when nobody holds the lock keeps what came to it. */
export const keepTurnsThatAreLeft: Defect['change'] = (store) =>
  mapOrder(store, {
    leave: async (key, name) => ((await store.operator.inspect(key)) ? store.turns.leave(key, name) : undefined),
  });

/** Defects of a store that the rules of this group notice. */
export const DEFECTS_OF_TURNS: Readonly<Record<string, Defect>> = {
  'reserves nothing': {
    rule: 'a released lock is reserved for the first in the queue',
    change: (store) => ({ acquire: (hold) => store.acquire(hold) }),
  },
  'notifies nobody of a turn': {
    rule: 'a released lock is reserved for the first in the queue',
    change: (store) => mapTurns(store, () => ({ turn: () => undefined, recheck: () => undefined })),
  },
  'reserves a lock for those who do not queue': {
    rule: 'a lock that nobody queues for',
    change: (store) => ({ acquire: (hold, place) => store.acquire(hold, place ?? { name: hold.id }) }),
  },
  'asks for a recheck at once': {
    rule: 'a busy answer to a place says how soon',
    change: (store) => mapBusy(store, (reply) => ({ ...reply, recheckMs: 0 })),
  },
  'lets newcomers have a lock whose lease has ended': {
    rule: 'a newcomer that finds the lock free while others queue',
    change: (store) => mapFree(store, ({ holder }) => holder.by !== ''),
  },
  'makes the last in the queue the first': {
    rule: 'the first in the queue takes a lock whose lease has ended',
    change: (store) => {
      const queue = new Map<string, { hold: HoldRecord; name: string }[]>();
      return {
        acquire: async (hold, place) => {
          const waiting = queue.get(hold.key) ?? [];
          if (place && !waiting.some(({ name }) => name === place.name)) {
            // All that came before queue again, behind.
            const before = waiting.splice(0);
            await Promise.all(before.map(({ name }) => store.turns.leave(hold.key, name)));
            const reply = await store.acquire(hold, place);
            for (const each of before) {
              await store.acquire(each.hold, { name: each.name });
            }
            queue.set(hold.key, [{ hold, name: place.name }, ...before]);
            return reply;
          }
          return store.acquire(hold, place);
        },
      };
    },
  },
  'reserves for ever': {
    rule: 'a turn that nobody claims for a second',
    change: (store) => {
      const turns = new Map<string, string>();
      return {
        ...mapTurns(store, (listener) => listener),
        acquire: async (hold, place) => {
          const first = turns.get(hold.key);
          if (first === undefined) {
            const reply = await store.acquire(hold, place);
            if (!isGrant(reply) && place) {
              turns.set(hold.key, place.name);
            }
            return reply;
          }
          return first === place?.name ? store.acquire(hold, place) : BUSY;
        },
      };
    },
  },
  'gives a repeated attempt a new place': {
    rule: 'an attempt that is sent twice keeps its place',
    change: (store) => ({
      acquire: async (hold, place) => {
        if (place && (await store.operator.inspect(hold.key))) {
          await store.turns.leave(hold.key, place.name);
        }
        return store.acquire(hold, place);
      },
    }),
  },
  'has a new fence for each copy of a grant': {
    rule: 'a grant that is sent twice answers the same fence',
    change: (store) => {
      let copies = 0;
      return mapGrants(store, (fence) => fence + copies++);
    },
  },
  'keeps places that were left': {
    rule: 'a place that leaves is not notified',
    change: (store) => mapOrder(store, { leave: async () => undefined }),
  },
  'keeps the turn of a place that leaves': {
    rule: 'a place that leaves with its turn',
    change: keepTurnsThatAreLeft,
  },
  'leaves by key': {
    rule: 'leaving a place takes no later one away',
    change: (store) =>
      withPlaces(store, (namesOf) =>
        mapOrder(store, { leave: async (key) => void (await Promise.all(namesOf(key).map((name) => store.turns.leave(key, name)))) }),
      ),
  },
  'hands over with every copy of a release': {
    rule: 'a release that is sent twice hands over once',
    change: (store) => {
      const released = new Set<string>();
      const turns = new Map<string, string>();
      return {
        ...mapTurns(store, (listener) => ({
          turn: (key, name) => {
            turns.set(key, name);
            listener.turn(key, name);
          },
          recheck: () => undefined,
        })),
        release: async (hold) => {
          if (released.has(hold.id)) {
            await store.turns.leave(hold.key, turns.get(hold.key) ?? '');
          }
          released.add(hold.id);
          return store.release(hold);
        },
      };
    },
  },
  'queues a hold that has ended': {
    rule: 'an acquire of a hold that has ended neither takes the lock nor queues',
    change: (store) =>
      mapBusy(store, async (reply, hold, place) => {
        await (place && reply.holder.by === '' && store.acquire({ ...hold, id: `${hold.id} again` }, place));
        return reply;
      }),
  },
  'notifies in the context of a caller': {
    rule: 'a notice comes outside the contexts',
    change: (store) => {
      const listeners: TurnListener[] = [];
      return {
        ...mapOrder(store, { onTurn: (listener) => listeners.push(listener) }),
        ...mapBusy(store, (reply, { key }, place) => {
          if (place) {
            setTimeout(() => listeners.forEach((listener) => listener.turn(key, place.name)), 20);
          }
          return reply;
        }),
      };
    },
  },
  'makes guests wait': {
    rule: 'a join enters before the queue',
    change: (store) => ({
      tickets: {
        join: async (hold) => (await store.operator.inspect(hold.key))?.waiters.length === 0 && store.tickets.join(hold),
      },
    }),
  },
  'clears the queue by a forced release': {
    rule: 'a forced release hands over',
    change: (store) =>
      withPlaces(store, (namesOf) =>
        mapOperator(store, {
          forceRelease: async (key, fence) => {
            await store.turns.leave(key, namesOf(key).at(-1) ?? '');
            return store.operator.forceRelease(key, fence);
          },
        }),
      ),
  },
};
