import type { HoldRecord } from '../../../lib/core/seam/lock-store';
import { isGrant, type Defect } from './defect';

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
    change: (store) => ({
      acquire: async (hold, place) => {
        const reply = await store.acquire(hold, place);
        return isGrant(reply) || hold.shares !== 'read' ? reply : { fence: Date.now() * 1_000 };
      },
    }),
  },
  'lets a reader in beside a write of its owner': {
    rule: 'a reader waits for a write',
    change: (store) => {
      const writes = new Set<string>();
      return {
        acquire: async (hold, place) => {
          const reply = await store.acquire(hold, place);
          if (isGrant(reply) && hold.shares === undefined) {
            writes.add(hold.owner);
          }
          return !isGrant(reply) && hold.shares === 'read' && writes.has(hold.owner) ? { fence: Date.now() * 1_000 } : reply;
        },
      };
    },
  },
  'looks for readers, and then writes': {
    rule: 'of readers and writes that ask at once',
    change: (store) => ({
      acquire: async (hold, place) => {
        const seen = await store.operator.inspect(hold.key);
        await Promise.resolve();
        const reply = await store.acquire(hold, place);
        return seen === null && !isGrant(reply) ? { fence: Date.now() * 1_000 } : reply;
      },
    }),
  },
  'tells a write of the reader that leaves first': {
    rule: 'a busy answer to a write says who reads',
    change: (store) => ({
      acquire: async (hold, place) => {
        const reply = await store.acquire(hold, place);
        return isGrant(reply) ? reply : { ...reply, remainingMs: Math.min(reply.remainingMs, 3_000) };
      },
    }),
  },
  'does not say who reads': {
    rule: 'a busy answer to a write says who reads',
    change: (store) => ({
      acquire: async (hold, place) => {
        const reply = await store.acquire(hold, place);
        return isGrant(reply) ? reply : { ...reply, holder: { by: '', heldMs: 0 } };
      },
    }),
  },
};
