import { LockStoreError } from '../../../lib/core/words/errors';
import type { ForcedListener, TurnListener } from '../../../lib/core/seam/lock-store';
import { mapTurns, type Defect } from './defect';

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
    change: (store) => {
      const kept: TurnListener[] = [];
      return {
        ...mapTurns(store, (listener) => {
          kept.push(listener);
          return listener;
        }),
        close: async () => {
          await store.close();
          kept.forEach((listener) => store.turns.onTurn(listener));
        },
      };
    },
  },
  'keeps its listeners of forced releases': {
    rule: 'a listener of forced releases may be registered before',
    change: (store) => {
      const kept: ForcedListener[] = [];
      return {
        operator: {
          ...store.operator,
          onForced: (listener) => {
            kept.push(listener);
            store.operator.onForced(listener);
          },
        },
        close: async () => {
          await store.close();
          kept.forEach((listener) => store.operator.onForced(listener));
        },
      };
    },
  },
};
