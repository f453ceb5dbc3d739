import { LockConfigurationError, LockKeyError } from '../../lib/core/words/errors';
import type { LockOptions } from '../../lib/core/words/call-options';
import type { LockService } from '../../lib/nest/lock.service';
import { MemoryLockStore } from '../../lib/memory/memory-lock-store';
import { makeLocks } from '../support/make-locks';
import { saying } from '../support/saying';

let locks: LockService;
let store: MemoryLockStore;
const troubles: string[] = [];

beforeEach(() => {
  store = new MemoryLockStore();
  locks = makeLocks(store, { onTrouble: ({ type }) => troubles.push(type) });
});
afterEach(() => locks.shutdown());

test('a key has at most 1024 bytes, whoever asks for it', async () => {
  const longest = 'é'.repeat(512);
  expect(await locks.withLock(longest, () => 'ran')).toBe('ran');
  for (const call of [
    () => locks.acquire(`${longest}x`),
    () => locks.acquire(['k', `${longest}x`]),
    () => locks.operations.inspect(`${longest}x`),
    () => locks.operations.forceRelease(`${longest}x`, { fence: 1 }),
  ]) {
    await expect(call()).rejects.toBeInstanceOf(LockKeyError);
    await expect(call()).rejects.toThrow(saying(/1025 bytes; at most 1024 are allowed/));
  }
});

test.each<[keyof LockOptions]>([['ttl'], ['wait'], ['maxHold'], ['minHold']])(
  '%s is at most 2147483647 ms, the longest that a timer of Node can keep',
  async (option) => {
    for (const tooLong of [2 ** 31, Infinity, '25d']) {
      const call = locks.acquire('k', { [option]: tooLong });
      await expect(call).rejects.toBeInstanceOf(LockConfigurationError);
      await expect(call).rejects.toThrow(new RegExp(`${option} is .*, which is not a duration from \\d+ to 2147483647 ms`));
    }
    expect(await store.inspect('k')).toBeNull();
    if (option !== 'minHold') {
      await (await locks.acquire('k', { [option]: 2 ** 31 - 1 })).release();
    }
  },
);

test('a lock has at most 1000 holds: a ticket that is passed on to more is refused at once, and frees nothing', async () => {
  const held = await locks.acquire('k');
  const guests = await Promise.all(Array.from({ length: 999 }, () => locks.acquire('k', { ticket: held.makeTicket() })));
  const startedAt = performance.now();
  const call = locks.acquire('k', { ticket: held.makeTicket(), wait: 60_000 });
  await expect(call).rejects.toBeInstanceOf(LockConfigurationError);
  await expect(call).rejects.toThrow(saying(/^Lock "k": 1000 holds are in it already, as many as a lock may have\. Let fewer calls enter/));
  expect(performance.now() - startedAt).toBeLessThan(15_000);
  expect(await locks.operations.inspect('k')).toMatchObject({ holds: 1_000, fence: held.fence });
  await guests.pop()?.release();
  expect(await locks.withLock('k', { ticket: held.makeTicket() }, () => 'ran')).toBe('ran');
  await Promise.all([...guests, held].map((lock) => lock.release()));
  expect(await locks.operations.inspect('k')).toBeNull();
  expect(troubles).toEqual([]);
});
