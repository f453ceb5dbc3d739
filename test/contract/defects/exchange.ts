import { LockStoreError } from '../../../lib/core/words/errors';
import type { Turns } from '../../../lib/core/seam/lock-store';
import { BUSY, isGrant, mapBusy, mapOrder, type Defect, type Parts } from './defect';

function mapExchange(store: Parts, exchange: Turns['exchange']): Partial<Parts> {
  return mapOrder(store, { exchange });
}

/** Defects of a store that the rules of this group notice. */
export const DEFECTS_OF_EXCHANGE: Readonly<Record<string, Defect>> = {
  'hands the old fence on': {
    rule: 'an exchange releases and grants',
    change: (store) =>
      mapExchange(store, async (hold, next, place, mayOvertake) => {
        const { released, reply } = await store.turns.exchange(hold, next, place, mayOvertake);
        return { released, reply: isGrant(await reply) ? { fence: hold.fence } : reply };
      }),
  },
  'exchanges once': {
    rule: 'an exchange of an unanswered hold that is sent twice',
    change: (store) => {
      const seen = new Set<string>();
      return mapExchange(store, async (hold, next, place, mayOvertake) => {
        const answer = await store.turns.exchange(hold, next, place, mayOvertake);
        const isFirst = !seen.has(next.id);
        seen.add(next.id);
        return isFirst ? answer : { ...answer, released: false };
      });
    },
  },
  'always overtakes': {
    rule: 'an exchange overtakes the queue only where it may',
    change: (store) => mapExchange(store, (hold, next, place) => store.turns.exchange(hold, next, place, true)),
  },
  'grants nothing where it may not overtake': {
    rule: 'an exchange grants where nobody queues',
    change: (store) =>
      mapExchange(store, async (hold, next, place, mayOvertake) =>
        mayOvertake ? store.turns.exchange(hold, next, place, mayOvertake) : { released: await store.release(hold), reply: BUSY },
      ),
  },
  'fails where it grants to a place that waits': {
    rule: 'an exchange that grants to a place of this process that waits',
    change: (store) => {
      const waiting = new Set<string>();
      return {
        ...mapBusy(store, (reply, _hold, place) => {
          waiting.add(place?.name ?? '');
          return reply;
        }),
        ...mapExchange(store, async (hold, next, place, mayOvertake) => {
          const answer = await store.turns.exchange(hold, next, place, mayOvertake);
          if (waiting.has(place.name)) {
            throw new LockStoreError('the statement was refused', hold.key, { unknown: false });
          }
          return answer;
        }),
      };
    },
  },
  'exchanges for a hold that has ended': {
    rule: 'an exchange for a hold that has ended',
    change: (store) =>
      mapExchange(store, (hold, next, place, mayOvertake) =>
        store.turns.exchange(hold, { ...next, id: `${next.id} again` }, place, mayOvertake),
      ),
  },
  'says that it released what was gone': {
    rule: 'an exchange of a lock that is gone',
    change: (store) =>
      mapExchange(store, async (hold, next, place, mayOvertake) => ({
        ...(await store.turns.exchange(hold, next, place, mayOvertake)),
        released: true,
      })),
  },
  'exchanges beside a guest': {
    rule: 'an exchange beside a further hold',
    change: (store) =>
      mapExchange(store, async (hold, next, place, mayOvertake) => {
        const { released, reply } = await store.turns.exchange(hold, next, place, mayOvertake);
        return { released, reply: isGrant(await reply) ? reply : { fence: hold.fence + 1 } };
      }),
  },
};
