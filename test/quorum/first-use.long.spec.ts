import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import type { HoldRecord } from '../../lib/core/seam/lock-store';
import type { QuorumLockStore } from '../../lib/quorum/quorum-lock-store';
import { makeLocks } from '../support/make-locks';
import { acquired, newHold, QuorumStores } from '../support/quorum-stores';
import { RedisQuorum } from '../support/redis-quorum';
import { saying } from '../support/saying';
import { until } from '../support/until';

/** Far longer than any test: what counts sooner was taken for new, or was known. */
const LONGEST_MS = 120_000;
const RECORD = 'lock:run:{0}';

let stores: QuorumStores;
afterEach(() => stores.stop());

const setUp = async (count = 5): Promise<void> => {
  stores = new QuorumStores(await RedisQuorum.startNew(count), { longestLease: LONGEST_MS });
};

async function granted(by: QuorumLockStore, key: string, withinMs: number): Promise<HoldRecord> {
  let hold: HoldRecord | undefined;
  await until('the grant', async () => (hold = await acquired(by, key).catch(() => undefined)) !== undefined, withinMs);
  return hold as HoldRecord;
}

describe('a quorum that was never used', () => {
  test('grants with the start of the first store, and warns of nothing, though many start at once and servers are slow', async () => {
    await setUp(3);
    stores.quorum.proxies.forEach((proxy, at) => (proxy.latencyMs = 50 * at));
    const all = await Promise.all(Array.from({ length: 8 }, () => stores.open()));
    for (const store of all) {
      await makeLocks(store).withLock('k', { wait: 30_000 }, () => undefined);
    }
    expect(stores.warnings).toEqual([]);
  });

  test.each([
    ['one server stands', [1]],
    ['all servers stand', [0, 1, 2]],
  ])('has locks with the start of the first store, and warns of nothing, where %s still for a second and a half', async (_, places) => {
    await setUp(3);
    places.forEach((place) => stores.quorum.at(place).pause());
    const resumed = sleep(1_500).then(() => places.forEach((place) => stores.quorum.at(place).resume()));
    const store = await stores.open(stores.quorum.urls);
    await resumed;
    expect(stores.warnings).toEqual([]);
    const hold = await acquired(store, 'k');
    expect(await store.release(hold)).toBe(true);
  });

  test('grants long before the longest lease has passed where one of its servers is not there yet', async () => {
    await setUp(3);
    await stores.quorum.at(2).kill();
    const store = await stores.open(stores.quorum.urls);
    const hold = await granted(store, 'k', LONGEST_MS / 4);
    expect(await store.release(hold)).toBe(true);
  });

  test('has locks at once where the first process ended in the midst of reporting to the servers', async () => {
    await setUp();
    const first = await stores.open();
    await first.release(await acquired(first, 'k'));
    await first.close();
    // As if it had reported to the first of them only.
    await Promise.all([1, 2, 3, 4].map((at) => stores.quorum.at(at).client.hdel(RECORD, 'counts', 'first')));
    await granted(await stores.open(), 'k', 15_000);
  });
});

describe('servers that are all empty', () => {
  test('are not taken for new by a process that starts then, while another one knows an earlier run', async () => {
    await setUp();
    const holder = await stores.open();
    await acquired(holder, 'k', 60_000);
    await Promise.all(stores.quorum.servers.map(async (server) => server.kill()));
    await Promise.all(stores.quorum.servers.map(async (server) => server.start()));
    const newcomer = await stores.open(stores.quorum.urls);
    const startedAt = performance.now();
    while (performance.now() - startedAt < 4_000) {
      const reply = await newcomer.acquire(newHold('k', 5_000)).catch(() => undefined);
      expect(reply?.fence).toBeUndefined();
    }
    await expect(newcomer.acquire(newHold('k'))).rejects.toThrow(saying(/it restarted not long ago/));
  });

  test('are not new where an earlier snapshot shows that there was an earlier run', async () => {
    await setUp(3);
    const first = await stores.open();
    await acquired(first, 'k', 60_000);
    await first.close();
    for (const { client } of stores.quorum.servers) {
      await client.hset(RECORD, 'run', 'an earlier one');
    }
    await expect((await stores.open()).acquire(newHold('j'))).rejects.toThrow(saying(/it restarted not long ago/));
  });
});
