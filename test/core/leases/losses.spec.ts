import { jest } from '@jest/globals';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import { LockStoreError } from '../../../lib/core/words/errors';
import type { Lock } from '../../../lib/core/words/lock';
import type { LockService } from '../../../lib/nest/lock.service';
import { makeLocks } from '../../support/make-locks';
import { playTime, sleep } from '../../support/virtual-time';

playTime();

const TTL_MS = 3_000;
const LEASE_MS = TTL_MS * 0.99 - 2;

let store: MemoryLockStore;
let locks: LockService;
beforeEach(() => {
  store = new MemoryLockStore();
  locks = makeLocks(store);
});

async function force(): Promise<void> {
  await store.forceRelease('k', (await store.inspect('k'))?.fence ?? 0);
}

/** The error of a call whose body loses its lock, and ends afterwards. */
async function lossIn(lose: (lock: Lock) => unknown, options = {}): Promise<unknown> {
  const call = locks.withLock('k', { ttl: TTL_MS, ...options }, async (lock) => {
    const lost = new Promise((resolve) => lock.signal.addEventListener('abort', resolve));
    await lose(lock);
    await lost;
  });
  return call.catch((error: unknown) => error);
}

test.each([
  [
    {},
    'its lease ended before the code did. Check lock.signal in long sections, ' +
      'raise ttl above the longest pause, and let the resource refuse the old fence.',
  ],
  [{ renew: false }, 'its lease ended, and is not renewed (renew: false). Raise ttl, or call lock.extend().'],
])('a lease of %j that ended before its code says for how long it was held, and how to be safe', async (options, why) => {
  store.renew = () => Promise.reject(new LockStoreError('no answer', 'k', { unknown: true }));
  expect(await lossIn(() => undefined, options)).toMatchObject({
    key: 'k',
    reason: 'expired',
    detail: `Lock "k" was lost after ${LEASE_MS} ms: ${why}`,
  });
});

test('a lock that the store no longer has is lost as one that expired, and says so', async () => {
  store.renew = async (holds) => holds.map(() => false);
  expect(await lossIn(() => undefined)).toMatchObject({
    reason: 'expired',
    detail: expect.stringMatching(
      /: the store no longer has it\. It was deleted, flushed or evicted, or the store restarted without its data: find out by whom, and let the resource refuse the old fence\.$/,
    ) as string,
  });
});

test('a lock that an operator released while its own release was on its way says so too', async () => {
  const release = store.release.bind(store);
  store.release = async (hold) => {
    await force();
    await sleep(1);
    return release(hold);
  };
  const call = locks.withLock('k', () => undefined).catch((error: unknown) => error);
  expect(await call).toMatchObject({ code: 'LOCK_LOST', reason: 'forced' });
});

test('a lock that an operator released says so', async () => {
  expect(await lossIn(force)).toMatchObject({
    reason: 'forced',
    detail: 'Lock "k" was lost after 0 ms: an operator released it by force. Find out why before the call is repeated.',
  });
});

test('a call that the shutdown ended says so', async () => {
  expect(await lossIn(() => void locks.shutdown())).toMatchObject({
    reason: 'shutdown',
    detail:
      'Lock "k" was lost after 0 ms: the application shut down. Let sections end before the server has drained, or repeat the call after the restart.',
  });
});

test('code is told of its maxHold with what is left of the lease, and its loss says that it ran on', async () => {
  let told: unknown;
  const loss = await lossIn(
    async (lock) => {
      lock.signal.addEventListener('abort', () => (told = lock.signal.reason));
      await sleep(LEASE_MS + 50);
    },
    { maxHold: 100 },
  );
  expect(told).toMatchObject({
    reason: 'maxHold',
    detail:
      `Lock "k" has been held for its maxHold. It is not renewed any more and ends in ${LEASE_MS - 100} ms. ` +
      'Make sure that the code stops when lock.signal aborts, or raise maxHold.',
  });
  expect(loss).toMatchObject({
    reason: 'maxHold',
    detail: `Lock "k" was lost after ${LEASE_MS} ms: the code ran on after its maxHold. Stop when lock.signal aborts, or raise maxHold.`,
  });
});

test('a lock whose wall clock went past the end of its lease cannot be trusted until the store has renewed it', async () => {
  let ahead = 0;
  locks = makeLocks(store, { clock: { monotonic: () => performance.now(), wall: () => Date.now() + ahead } });
  await locks.withLock('k', { ttl: TTL_MS }, async (lock) => {
    ahead = 60_000;
    expect(() => lock.assertHeld()).toThrow(
      expect.objectContaining({
        reason: 'expired',
        detail:
          'Lock "k" cannot be trusted at this moment: the wall clock went past the end of its lease, so the machine slept, or its ' +
          'clock was set. Repeat the call; lock.isHeld() is true again once the store has renewed the lease.',
      }),
    );
    await sleep(TTL_MS / 2);
    expect(lock.isHeld()).toBe(true);
  });
});

describe('a forced release whose message comes before the reply that grants the lock', () => {
  test('is a loss: the code runs in a lock that is there, or not at all', async () => {
    const acquire = store.acquire.bind(store);
    store.acquire = async (...asked) => {
      const reply = await acquire(...asked);
      await force();
      return reply;
    };
    const run = jest.fn();
    await expect(locks.withLock('k', run)).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'forced' });
    expect(run).not.toHaveBeenCalled();
  });

  test('is a loss for a guest too, and later locks on the key are none of its concern', async () => {
    const other = makeLocks(store);
    const join = store.join.bind(store);
    store.join = async (hold) => {
      const joined = await join(hold);
      await force();
      return joined;
    };
    const run = jest.fn();
    const outer = locks.withLock('k', (lock) => other.withLock('k', { ticket: lock.makeTicket() }, run));
    await expect(outer).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'forced' });
    expect(run).not.toHaveBeenCalled();
    expect(await other.withLock('k', { wait: 0 }, (lock) => lock.isHeld())).toBe(true);
  });

  test('is remembered for the last hundred keys', async () => {
    const replies: (() => void)[] = [];
    const acquire = store.acquire.bind(store);
    store.acquire = async (...asked) => {
      const reply = await acquire(...asked);
      await new Promise<void>((resolve) => replies.push(resolve));
      return reply;
    };
    const keys = Array.from({ length: 102 }, (_, at) => `k${at}`);
    const calls = keys.map((key) => locks.withLock(key, () => 'entered').catch(({ reason }: { reason: string }) => reason));
    await sleep(1);
    for (const key of keys) {
      await store.forceRelease(key, (await store.inspect(key))?.fence ?? 0);
    }
    store.acquire = acquire;
    replies.forEach((answer) => answer());
    const ended = await Promise.all(calls);
    expect(ended.slice(2)).toEqual(keys.slice(2).map(() => 'forced'));
  });
});
