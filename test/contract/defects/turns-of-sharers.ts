import type { Shares } from '../../../lib/core/seam/lock-store';
import type { Place } from '../../../lib/core/seam/lock-store';
import { KINDS, type Kind } from '../../../lib/contract/rules/shared-keys/sharing';
import { BUSY, isGrant, mapFree, mapTurns, withPlaces, type Defect, type Parts } from './defect';
import { keepTurnsThatAreLeft } from './turns';

/** Asks without a place where `isPlaced` says so, so that nobody queues. */
function unplaced(store: Parts, isUnplaced: (shares: Shares | undefined) => boolean): Partial<Parts> {
  return { acquire: (hold, place) => store.acquire(hold, isUnplaced(hold.shares) ? undefined : place) };
}

/** Notifies of the first turn of each key only, or of turns that `isMeant` lets through. */
function hearing(store: Parts, isMeant: (name: string, before: number) => boolean): Partial<Parts> {
  const turns = new Map<string, number>();
  return mapTurns(store, (listener) => ({
    turn: (key, name) => {
      const before = turns.get(key) ?? 0;
      turns.set(key, before + 1);
      if (isMeant(name, before)) {
        listener.turn(key, name);
      }
    },
    recheck: () => undefined,
  }));
}

function defectsOf({ who, shares, rival }: Kind): Readonly<Record<string, Defect>> {
  const isMine = (asked: Shares | undefined): boolean => asked === shares;
  const defects: Readonly<Record<string, Defect>> = {
    'loses its place when it asks again': {
      rule: 'that queues gets its turn in order',
      change: (store) => ({
        acquire: async (hold, place) => {
          if (place && (await store.operator.inspect(hold.key)) && hold.shares === rival.shares) {
            await store.turns.leave(hold.key, place.name);
          }
          return store.acquire(hold, place);
        },
      }),
    },
    'does not queue': {
      rule: 'that queues gets its turn in order',
      change: (store) => unplaced(store, isMine),
    },
    'keeps the turn that it leaves': {
      rule: 'that leaves with its turn hands it to the next',
      change: keepTurnsThatAreLeft,
    },
    'keeps its turn for ever': {
      rule: 'that does not claim its turn for a second',
      change: (store) => {
        const first = new Map<string, Place>();
        return {
          acquire: async (hold, place) => {
            const before = first.get(hold.key);
            if (before && place && before.name !== place.name) {
              await store.acquire(hold, place);
              return BUSY;
            }
            const reply = await store.acquire(hold, place);
            if (place && !isGrant(reply)) {
              first.set(hold.key, place);
            }
            return reply;
          },
        };
      },
    },
    'makes room for newcomers': {
      rule: 'whose lease is over makes room for the first in the queue',
      change: (store) => mapFree(store, (_reply, place) => place === undefined),
    },
  };
  return Object.fromEntries(
    Object.entries(defects).map(([name, { rule, change }]) => [`queues ${who} that ${name}`, { rule: `${who} ${rule}`, change }]),
  );
}

/** Defects of a store that the rules of this group notice. */
export const DEFECTS_OF_TURNS_OF_SHARERS: Readonly<Record<string, Defect>> = {
  ...Object.assign({}, ...KINDS.map(defectsOf)),
  'lets readers overtake a write that queues': {
    rule: 'a reader that comes does not overtake a write that queues',
    change: (store) => unplaced(store, (shares) => shares === undefined),
  },
  'does not notify a write after the last reader': {
    rule: 'a reader that comes does not overtake a write that queues',
    change: (store) => hearing(store, (name) => name.endsWith('R')),
  },
  'notifies one reader where several may read': {
    rule: 'after a write all readers at the head are notified',
    change: (store) => hearing(store, (_name, before) => before !== 1),
  },
  'notifies the readers behind a write as well': {
    rule: 'after a write all readers at the head are notified',
    change: (store) =>
      withPlaces(store, (namesOf) =>
        mapTurns(store, (listener) => ({
          turn: (key, name) => {
            const readers = namesOf(key).filter((place) => place.endsWith('R'));
            [name, ...readers].forEach((each) => listener.turn(key, each));
          },
          recheck: () => undefined,
        })),
      ),
  },
  'lets readers wait for a write that left the queue': {
    rule: 'a write that leaves the queue lets the readers in',
    change: (store) => hearing(store, () => false),
  },
  'notifies all of the queue of one room': {
    rule: 'a release of a permit notifies one of the queue',
    change: (store) =>
      withPlaces(store, (namesOf) =>
        mapTurns(store, (listener) => ({
          turn: (key) => namesOf(key).forEach((name) => listener.turn(key, name)),
          recheck: () => undefined,
        })),
      ),
  },
  'gives a room that is reserved to a newcomer': {
    rule: 'a release of a permit notifies one of the queue',
    change: (store) => ({
      acquire: async (hold, place) => {
        const { holds = 0 } = (await store.operator.inspect(hold.key)) ?? {};
        const reply = await store.acquire(hold, place);
        return !isGrant(reply) && !place && holds < Number(hold.shares) ? { fence: Date.now() * 1_000 } : reply;
      },
    }),
  },
  'notifies one where several permits fit': {
    rule: 'a release that makes room for several permits',
    change: (store) => hearing(store, (_name, before) => before !== 1),
  },
};
