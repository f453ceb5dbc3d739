import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { makeLocks } from '../support/make-locks';
import { openSwiftly } from '../support/open-swiftly';
import { RedisServer } from '../support/redis-server';
import { sourceOf } from '../support/redis-source';

const LOCK = 'lock:lock:{k}';
const FENCE = 'lock:fence:{0}';
/**
 * For a machine that is busy with other things. A lease that nobody asks for ends 4 s after its last renewal at least.
 */
const SLACK_MS = 1_900;

let server: RedisServer;
let store: RedisLockStore;

beforeEach(async () => {
  server = await RedisServer.start('--maxmemory', '3mb', '--maxmemory-policy', 'allkeys-lru');
});
afterEach(async () => {
  await store.close();
  await server.stop();
});

/** Writes until the server has evicted the keys to make room. */
async function fillUntilGone(...names: string[]): Promise<void> {
  for (let round = 0; (await server.client.exists(...names)) > 0; round++) {
    if (round === 500) {
      throw new Error(`${names.join(' and ')} outlived ${round * 100} KiB of writes.`);
    }
    await Promise.all(Array.from({ length: 100 }, (_, at) => server.client.set(`filler ${round} ${at}`, 'x'.repeat(1_024))));
  }
}

test('a server that evicts is warned of at start; the loss of a lock is notified within a renewal, and fences rise', async () => {
  const opened = await openSwiftly(() => new RedisLockStore(sourceOf(server.url)));
  store = opened.store;
  expect(opened.warnings).toEqual([expect.stringMatching(/evicts keys \(maxmemory-policy is allkeys-lru\).*Set it to noeviction/)]);
  const locks = makeLocks(store);
  let before = 0;
  const call = locks.withLock('k', { ttl: 6_000 }, async (lock) => {
    before = lock.fence;
    await fillUntilGone(LOCK);
    const evictedAt = performance.now();
    while (!lock.signal.aborted && performance.now() - evictedAt < 10_000) {
      await sleep(10);
    }
    expect(performance.now() - evictedAt).toBeLessThan(2_000 + SLACK_MS);
    expect(lock.isHeld()).toBe(false);
  });
  await expect(call).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'expired', detail: expect.stringMatching(/flushed or evicted/) });
  await fillUntilGone(FENCE);
  expect(await locks.withLock('k', { wait: 0 }, ({ fence }) => fence)).toBeGreaterThan(before);
});
