import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import type { LockOptions } from '../../../lib/core/words/call-options';
import { makeLocks } from '../../support/make-locks';
import { playTime } from '../../support/virtual-time';
import { saying } from '../../support/saying';

playTime();

/** A store that grants no lease of more than ten seconds. */
class LimitedStore extends MemoryLockStore {
  readonly longestLeaseMs = 10_000;
}

test.each<[string, LockOptions]>([
  ['its ttl', { ttl: 10_000 }],
  ['its minHold', { ttl: 1_000, minHold: 9_000 }],
])('a call whose lease the store grants at most is let in, by %s', async (_, options) => {
  expect(await makeLocks(new LimitedStore()).withLock('k', options, () => 'entered')).toBe('entered');
});

test.each<[string, LockOptions, RegExp]>([
  ['its ttl', { ttl: 10_001 }, /"k": a lease of 10001 ms.*longest.* is 10000 ms\. Lower ttl, or raise longestLease/],
  [
    'its minHold',
    { ttl: 1_000, minHold: 10_000 },
    /"k": a lease of 10\d\d\d ms.*longest.* is 10000 ms\. Lower minHold, or raise longestLease/,
  ],
])('a call that needs a longer lease than the store grants is refused with what to lower: %s', async (_, options, what) => {
  const store = new LimitedStore();
  const locks = makeLocks(store);
  let ran = false;
  const call = locks.withLock('k', options, () => (ran = true));
  await expect(call).rejects.toMatchObject({ code: 'LOCK_CONFIGURATION', key: 'k' });
  await expect(call).rejects.toThrow(saying(what));
  expect([ran, await store.inspect('k')]).toEqual([false, null]);
});

test('a nested call that asks its enclosing lock for a longer lease than the store grants is refused too', async () => {
  const locks = makeLocks(new LimitedStore());
  await locks.withLock('k', async () => {
    await expect(locks.withLock('k', { ttl: 20_000 }, () => undefined)).rejects.toThrow(saying('Lower ttl'));
  });
});
