import { setTimeout as sleep } from 'node:timers/promises';
import type { HoldRecord } from '../../../lib/core/seam/lock-store';
import { BUSY, mapBusy, mapGrants, type Defect, type Parts } from './defect';

/** Gives a permit where fewer are in than `most` says of the one who comes and of those who came before. */
function counting(store: Parts, most: (mine: number, before: readonly number[]) => number): Partial<Parts> {
  const counts = new Map<string, number[]>();
  return {
    acquire: async (hold, place) => {
      if (typeof hold.shares !== 'number') {
        return store.acquire(hold, place);
      }
      const before = counts.get(hold.key) ?? [];
      const { holds = 0 } = (await store.operator.inspect(hold.key)) ?? {};
      if (holds >= most(hold.shares, before)) {
        return BUSY;
      }
      counts.set(hold.key, [...before, hold.shares]);
      return store.acquire({ ...hold, shares: 1_000 }, place);
    },
  };
}

/** Takes somebody out with each release that `isWrong`. */
function takingOut(store: Parts, isWrong: (answer: boolean) => boolean): Partial<Parts> {
  const permits: HoldRecord[] = [];
  return {
    ...mapGrants(store, (fence, hold) => {
      permits.push(hold);
      return fence;
    }),
    release: async (hold) => {
      const answer = await store.release(hold);
      const other = permits.find(({ key, id }) => key === hold.key && id !== hold.id);
      await (other && isWrong(answer) && store.release(other));
      return answer;
    },
  };
}

/** Defects of a store that the rules of this group notice. */
export const DEFECTS_OF_PERMITS: Readonly<Record<string, Defect>> = {
  'gives a permit too many': {
    rule: 'as many have a permit as there are',
    change: (store) => ({
      acquire: (hold, place) => store.acquire(typeof hold.shares === 'number' ? { ...hold, shares: hold.shares + 1 } : hold, place),
    }),
  },
  'gives one permit only': {
    rule: 'as many have a permit as there are',
    change: (store) => ({ acquire: (hold, place) => store.acquire({ ...hold, shares: 1 }, place) }),
  },
  'makes room for two with a release': {
    rule: 'as many have a permit as there are',
    change: (store) => takingOut(store, (answer) => answer),
  },
  'counts, and then gives a permit': {
    rule: 'of many that ask at once, in two processes, as many get a permit',
    change: (store) => ({
      acquire: async (hold, place) => {
        const { holds = 0 } = (await store.operator.inspect(hold.key)) ?? {};
        await sleep(1);
        return holds < Number(hold.shares) ? store.acquire({ ...hold, shares: 1_000 }, place) : store.acquire(hold, place);
      },
    }),
  },
  'counts as the one who comes says': {
    rule: 'the smallest count counts',
    change: (store) => counting(store, (mine) => mine),
  },
  'counts as those who are in say': {
    rule: 'the smallest count counts',
    change: (store) => counting(store, (mine, before) => (before.length > 0 ? Math.min(...before) : mine)),
  },
  'keeps the smallest count that there ever was': {
    rule: 'a count ends with the last hold that has it',
    change: (store) => counting(store, (mine, before) => Math.min(mine, ...before)),
  },
  'makes room by the release of a permit whose lease is over': {
    rule: 'a permit whose lease is over makes room for one, and its late release for none',
    change: (store) => takingOut(store, (answer) => !answer),
  },
  'makes no room by the end of a lease': {
    rule: 'a permit whose lease is over makes room for one, and its late release for none',
    change: (store) => ({ acquire: (hold, place) => store.acquire({ ...hold, ttlMs: 5_000 }, place) }),
  },
  'says when the last permit is over': {
    rule: 'a busy answer says when the next permit is over',
    change: (store) => mapBusy(store, (reply) => ({ ...reply, remainingMs: 9_000 })),
  },
};
