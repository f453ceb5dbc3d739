import { setTimeout as sleep } from 'node:timers/promises';
import { LockStoreError } from '../../../lib/core/words/errors';
import type { HoldRecord } from '../../../lib/core/seam/lock-store';
import { BUSY, isGrant, mapBusy, mapFree, mapGrants, mapHolds, mapReplies, type Defect } from './defect';

/** Defects of a store that the rules of this group notice. */
export const DEFECTS_OF_ACQUIRE: Readonly<Record<string, Defect>> = {
  'has no fences': { rule: 'a free lock is granted, with a fence', change: (store) => mapGrants(store, () => 0) },
  'has fractions of fences': { rule: 'a free lock is granted, with a fence', change: (store) => mapGrants(store, (fence) => fence + 0.5) },
  'grants to everybody': {
    rule: 'a lock is busy for every other owner',
    change: (store) => mapBusy(store, () => ({ fence: Date.now() * 1_000 })),
  },
  'does not say who holds the lock': {
    rule: 'a lock is busy for every other owner',
    change: (store) => mapBusy(store, (reply) => ({ ...reply, holder: { by: '', heldMs: 0 } })),
  },
  'counts half the time for which a lock is held': {
    rule: 'a lock is busy for every other owner',
    change: (store) => mapBusy(store, (reply) => ({ ...reply, holder: { ...reply.holder, heldMs: reply.holder.heldMs / 2 } })),
  },
  'queues attempts that were busy': {
    rule: 'an attempt that was busy leaves nothing behind',
    change: (store) => {
      const busy: HoldRecord[] = [];
      return {
        ...mapBusy(store, (reply, hold) => {
          busy.push(hold);
          return reply;
        }),
        release: async (hold) => {
          const answer = await store.release(hold);
          const next = busy.shift();
          await (next && store.acquire(next));
          return answer;
        },
      };
    },
  },
  'lets a second owner in now and then': {
    rule: 'owners in two processes are never in together',
    change: (store) => {
      let refused = 0;
      return mapBusy(store, (reply) => (++refused % 5 > 0 ? reply : { fence: Date.now() * 1_000 }));
    },
  },
  'checks, and then acquires': {
    rule: 'of many owners that ask at once',
    change: (store) =>
      mapFree(
        store,
        () => true,
        () => sleep(1),
      ),
  },
  'refuses what it granted before': {
    rule: 'an acquire that is sent twice is granted once',
    change: (store) => {
      const seen = new Set<string>();
      return mapReplies(store, (reply, hold) => {
        const isRepeated = seen.has(hold.id);
        seen.add(hold.id);
        return isRepeated && isGrant(reply) ? BUSY : reply;
      });
    },
  },
  'counts each copy of an acquire': {
    rule: 'two copies of an acquire that arrive at the same time',
    change: (store) => {
      let copies = 0;
      return mapGrants(store, async (fence, hold) => {
        await store.tickets.join({ ...hold, fence, id: `${hold.id} ${copies++}` });
        return fence;
      });
    },
  },
  'takes whole milliseconds only': {
    rule: 'times need not be whole milliseconds',
    change: (store) =>
      mapHolds(store, (hold) => {
        if (!Number.isInteger(hold.ttlMs)) {
          throw new TypeError('not an integer');
        }
        return hold;
      }),
  },
  'refuses the lease that it names as its longest': {
    rule: 'the longest lease that the store names',
    change: (store) => ({
      longestLeaseMs: 30_000,
      acquire: async (hold, place) => {
        if (hold.ttlMs >= 30_000) {
          throw new LockStoreError('too long', hold.key, { unknown: false });
        }
        return store.acquire(hold, place);
      },
    }),
  },
};
