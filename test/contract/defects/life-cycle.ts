import { LockStoreError } from '../../../lib/core/words/errors';
import type { Defect } from './defect';

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
    change: (store) => ({ turns: { ...store.turns, onTurn: (listener) => store.turns.onTurn(listener) } }),
  },
  'forgets its listeners of turns': {
    rule: 'a listener of turns may be registered before',
    change: (store) => {
      let over = new AbortController();
      return {
        turns: {
          ...store.turns,
          onTurn: (listener, until) => store.turns.onTurn(listener, AbortSignal.any([over.signal, ...(until ? [until] : [])])),
        },
        close: async () => {
          over.abort();
          over = new AbortController();
          await store.close();
        },
      };
    },
  },
  'keeps its listeners of forced releases': {
    rule: 'a listener of forced releases may be registered before',
    change: (store) => ({ operator: { ...store.operator, onForced: (listener) => store.operator.onForced(listener) } }),
  },
  'forgets its listeners of forced releases': {
    rule: 'a listener of forced releases may be registered before',
    change: (store) => {
      let over = new AbortController();
      return {
        operator: {
          ...store.operator,
          onForced: (listener, until) => store.operator.onForced(listener, AbortSignal.any([over.signal, ...(until ? [until] : [])])),
        },
        close: async () => {
          over.abort();
          over = new AbortController();
          await store.close();
        },
      };
    },
  },
};
