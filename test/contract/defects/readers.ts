import type { HoldRecord } from '../../../lib/core/seam/lock-store';
import { isGrant, mapBusy, mapFree, mapReplies, type Defect } from './defect';

/** Defects of a store that the rules of this group notice. */
export const DEFECTS_OF_READERS: Readonly<Record<string, Defect>> = {
  'takes a reader for a write': {
    rule: 'readers are in together, in all processes',
    change: (store) => ({ acquire: (hold, place) => store.acquire({ ...hold, shares: undefined }, place) }),
  },
  'lets a write in when the first reader has left': {
    rule: 'a write waits for all readers',
    change: (store) => {
      const readers: HoldRecord[] = [];
      return {
        acquire: (hold, place) => {
          if (hold.shares === 'read') {
            readers.push(hold);
          }
          return store.acquire(hold, place);
        },
        release: async (hold) => {
          const answer = await store.release(hold);
          await Promise.all(readers.filter(({ key }) => key === hold.key).map((reader) => store.release(reader)));
          return answer;
        },
      };
    },
  },
  'lets readers in beside a write': {
    rule: 'a reader waits for a write',
    change: (store) => mapBusy(store, (reply, { shares }) => (shares === 'read' ? { fence: Date.now() * 1_000 } : reply)),
  },
  'lets a reader in beside a write of its owner': {
    rule: 'a reader waits for a write',
    change: (store) => {
      const writes = new Set<string>();
      return mapReplies(store, (reply, { shares, owner }) => {
        if (isGrant(reply) && shares === undefined) {
          writes.add(owner);
        }
        return !isGrant(reply) && shares === 'read' && writes.has(owner) ? { fence: Date.now() * 1_000 } : reply;
      });
    },
  },
  'looks for readers, and then writes': {
    rule: 'of readers and writes that ask at once',
    change: (store) => mapFree(store, () => true),
  },
  'tells a write of the reader that leaves first': {
    rule: 'a busy answer to a write says who reads',
    change: (store) => mapBusy(store, (reply) => ({ ...reply, remainingMs: Math.min(reply.remainingMs, 3_000) })),
  },
  'does not say who reads': {
    rule: 'a busy answer to a write says who reads',
    change: (store) => mapBusy(store, (reply) => ({ ...reply, holder: { by: '', heldMs: 0 } })),
  },
};
