import { LockStoreError } from '../../../lib/core/words/errors';
import { mapOperator, mapOrder, type Defect, type Parts } from './defect';

/** A change that forgets its listeners when the store is closed: `during` adds that to the end of a listener. */
function untilClosed(store: Parts, change: (during: (until?: AbortSignal) => AbortSignal) => Partial<Parts>): Partial<Parts> {
  let over = new AbortController();
  return {
    ...change((until) => AbortSignal.any([over.signal, ...(until ? [until] : [])])),
    close: async () => {
      over.abort();
      over = new AbortController();
      await store.close();
    },
  };
}

/** Defects of a store that the rules of this group notice. */
export const DEFECTS_OF_THE_LIFE_CYCLE: Readonly<Record<string, Defect>> = {
  'offers more than its suite lists': {
    rule: 'the store offers what its suite lists',
    change: () => ({ open: async () => undefined }),
  },
  'cannot be used again': {
    rule: 'a store that was closed can be opened again',
    change: (store) => {
      let isClosed = false;
      return {
        acquire: async (hold, place) => {
          if (isClosed) {
            throw new LockStoreError('closed', hold.key, { unknown: false });
          }
          return store.acquire(hold, place);
        },
        close: async () => {
          isClosed = true;
        },
      };
    },
  },
  'cannot be closed twice': {
    rule: 'a store may be closed twice',
    change: (store) => {
      let closed = 0;
      return {
        close: async () => {
          // The suite closes once more.
          if (++closed === 2) {
            throw new TypeError('closed already');
          }
          await store.close();
        },
      };
    },
  },
  'keeps its listeners of turns': {
    rule: 'a listener of turns may be registered before',
    change: (store) => mapOrder(store, { onTurn: (listener) => store.turns.onTurn(listener) }),
  },
  'forgets its listeners of turns': {
    rule: 'a listener of turns may be registered before',
    change: (store) =>
      untilClosed(store, (during) => mapOrder(store, { onTurn: (listener, until) => store.turns.onTurn(listener, during(until)) })),
  },
  'keeps its listeners of forced releases': {
    rule: 'a listener of forced releases may be registered before',
    change: (store) => mapOperator(store, { onForced: (listener) => store.operator.onForced(listener) }),
  },
  'forgets its listeners of forced releases': {
    rule: 'a listener of forced releases may be registered before',
    change: (store) =>
      untilClosed(store, (during) =>
        mapOperator(store, { onForced: (listener, until) => store.operator.onForced(listener, during(until)) }),
      ),
  },
};
