import type { AcquireReply, HoldRecord } from '../../../lib/core/seam/lock-store';
import { KINDS, type Kind } from '../../../lib/contract/rules/shared-keys/sharing';
import { BUSY, mapBusy, mapFound, mapGrants, mapOperator, mapReplies, withGrants, type Defect, type Parts } from './defect';

/** Those of one kind are wrong, and all others as they should be. */
function defectsOf({ who, shares }: Kind): Readonly<Record<string, Defect>> {
  const isMine = (hold: HoldRecord): boolean => typeof hold.shares === typeof shares;
  const mapMine = (store: Parts, map: (hold: HoldRecord) => HoldRecord): Partial<Parts> => ({
    renew: (holds) => store.renew(holds.map((hold) => (isMine(hold) ? map(hold) : hold))),
  });
  const defects: Readonly<Record<string, Defect>> = {
    'has a fence of its own': {
      rule: 'that comes in beside others has their fence',
      change: (store) => {
        let grants = 0;
        return mapGrants(store, (fence, hold) => (isMine(hold) ? fence + grants++ : fence));
      },
    },
    'is refused when it asks again': {
      rule: 'that asks twice is in once: the same fence',
      change: (store) =>
        withGrants(store, ({ acquire, seen }) => ({
          acquire: async (hold, place) => (isMine(hold) && seen.has(hold.id) ? BUSY : acquire(hold, place)),
        })),
    },
    'is in with each copy': {
      rule: 'that asks twice at the same time is in once',
      change: (store) => {
        let copies = 0;
        return mapReplies(store, async (reply, hold) => {
          await (isMine(hold) && store.acquire({ ...hold, id: `copy ${copies++}` }));
          return reply;
        });
      },
    },
    'leaves no done mark for a release that is repeated': {
      rule: 'that is unanswered and is released twice',
      change: (store) => ({ release: (hold) => store.release(isMine(hold) ? { ...hold, unanswered: false } : hold) }),
    },
    'comes in again after its release': {
      rule: 'that was released while it was unanswered does not come in again',
      change: (store) =>
        mapBusy(store, (reply, hold, place) =>
          isMine(hold) && hold.unanswered ? store.acquire({ ...hold, id: `${hold.id} again` }, place) : reply,
        ),
    },
    'is brought back by its renewal': {
      rule: 'that was released is not renewed',
      change: (store) =>
        withGrants(store, ({ seen }) => ({
          renew: async (holds) => {
            const answers = await store.renew(holds);
            const gone = holds.filter((hold, at) => !answers[at] && isMine(hold) && seen.has(hold.id));
            await Promise.all(gone.map((hold) => store.acquire({ ...hold, fence: 0 })));
            return answers;
          },
        })),
    },
    'is released by strangers': {
      rule: 'is known by its owner and its hold',
      change: (store) =>
        withGrants(store, ({ seen }) => ({ release: (hold) => store.release(isMine(hold) ? (seen.get(hold.id) ?? hold) : hold) })),
    },
    'is renewed at any fence': {
      rule: 'is known by its owner and its hold',
      change: (store) =>
        withGrants(store, ({ seen }) => mapMine(store, (hold) => ({ ...hold, fence: seen.get(hold.id)?.fence ?? hold.fence }))),
    },
    'is kept in by the renewals of others': {
      rule: 'is out when its lease is over, whoever else is in',
      change: (store) =>
        withGrants(store, ({ seen }) => ({
          renew: async (holds) => {
            const answers = await store.renew(holds);
            const others = [...seen.values()].filter(({ key }) => holds.some((hold) => isMine(hold) && hold.key === key));
            await store.renew(others.map((hold) => ({ ...hold, ttlMs: 5_000 })));
            return answers;
          },
        })),
    },
    'comes in again in name only': {
      rule: 'that asks again when its lease is over is in again',
      change: (store) =>
        withGrants(store, ({ acquire, seen }) => ({
          acquire: async (hold, place) => {
            const mine = seen.get(hold.id);
            return isMine(hold) && mine ? { fence: mine.fence } : acquire(hold, place);
          },
        })),
    },
    'has no longer lease by its renewal': {
      rule: 'has a longer lease by a renewal or by asking again',
      change: (store) => mapMine(store, (hold) => ({ ...hold, ttlMs: 1 })),
    },
    'has a shorter lease by its renewal': {
      rule: 'has a longer lease by a renewal or by asking again',
      change: (store) => mapMine(store, (hold) => ({ ...hold, lingering: true })),
    },
    'has no longer lease by asking again': {
      rule: 'has a longer lease by a renewal or by asking again',
      change: (store) =>
        withGrants(store, ({ acquire, held }) => ({
          acquire: async (hold, place) => {
            const mine = held.get(hold.key);
            return isMine(hold) && mine?.id === hold.id ? { fence: mine.fence } : acquire(hold, place);
          },
        })),
    },
    'does not linger': {
      rule: 'that lingers has its lease set to exactly its time',
      change: (store) => mapMine(store, (hold) => ({ ...hold, lingering: false })),
    },
    'makes all others linger': {
      rule: 'that lingers has its lease set to exactly its time',
      change: (store) =>
        withGrants(store, ({ seen }) => ({
          renew: async (holds) => {
            const first = holds.find((hold) => hold.lingering && isMine(hold));
            const others = first ? [...seen.values()].filter(({ key }) => key === first.key) : [];
            await store.renew(others.map((hold) => ({ ...hold, ttlMs: first?.ttlMs ?? 0, lingering: true })));
            return store.renew(holds);
          },
        })),
    },
    'survives a forced release': {
      rule: 'is out after a forced release at its fence',
      change: (store) =>
        withGrants(store, ({ held }) =>
          mapOperator(store, {
            forceRelease: async (key, fence) => {
              const last = held.get(key);
              return last && last.fence === fence && isMine(last) ? store.release(last) : store.operator.forceRelease(key, fence);
            },
          }),
        ),
    },
    'is found by a search as alone': {
      rule: 'is found, and its key is shown as inspect shows it',
      change: (store) => mapFound(store, (lock) => ({ ...lock, shares: undefined })),
    },
  };
  return Object.fromEntries(
    Object.entries(defects).map(([name, { rule, change }]) => [`lets in ${who} that ${name}`, { rule: `${who} ${rule}`, change }]),
  );
}

/** Answers busy where the key is of the other kind. */
function answersBusy(isWrong: (hold: HoldRecord) => boolean): Defect['change'] {
  return (store) => ({
    acquire: (hold, place) =>
      store.acquire(hold, place).catch((error: unknown): AcquireReply => {
        if (isWrong(hold)) {
          return BUSY;
        }
        throw error;
      }),
  });
}

/** Defects of a store that the rules of this group notice. */
export const DEFECTS_OF_SHARING: Readonly<Record<string, Defect>> = {
  ...Object.assign({}, ...KINDS.map(defectsOf)),
  'is busy for a lock while it is a semaphore': {
    rule: 'a semaphore refuses to be a lock',
    change: answersBusy(({ shares }) => shares === undefined),
  },
  'is busy for a permit while it is a lock': {
    rule: 'a semaphore refuses to be a lock',
    change: answersBusy(({ shares }) => typeof shares === 'number'),
  },
  'stays a semaphore for ever': {
    rule: 'a semaphore refuses to be a lock',
    change: (store) => {
      const semaphores = new Set<string>();
      return {
        acquire: async (hold, place) => {
          if (typeof hold.shares === 'number') {
            semaphores.add(hold.key);
          } else if (semaphores.has(hold.key)) {
            await store.acquire({ ...hold, id: 'a permit', shares: 2 });
          }
          return store.acquire(hold, place);
        },
      };
    },
  },
  'names the count of the call that asks': {
    rule: 'a busy answer names the count of the holder that it names',
    change: (store) => mapBusy(store, (reply, { shares }) => (typeof shares === 'number' ? { ...reply, permits: shares } : reply)),
  },
  'is busy for a reader while it is a semaphore': {
    rule: 'a semaphore refuses to be read',
    change: answersBusy(({ shares }) => shares === 'read'),
  },
  'is busy for a permit while it is read': {
    rule: 'a semaphore refuses to be read',
    change: answersBusy(({ shares }) => typeof shares === 'number'),
  },
};
