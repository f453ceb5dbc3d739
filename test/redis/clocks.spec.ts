import 'reflect-metadata';
import { jest } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import type { HoldRecord } from '../../lib/core/seam/lock-store';
import type { LockNotAcquiredError } from '../../lib/core/words/errors';
import type { LockService } from '../../lib/nest/lock.service';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { until } from '../support/until';
import { startHolder } from '../support/holder';
import { makeLocks } from '../support/make-locks';
import type { RedisServer } from '../support/redis-server';
import { ServerClock } from '../support/server-clock';
import { newHold } from '../support/new-hold';

const HOUR_MS = 3_600_000;
const CLAIM_MS = 1_000;
const RECHECK_MS = 300;
const SELDOM_MS = 2_000;
/** For a machine that is busy with other things. */
const SLACK_MS = 2_000;
const LOCK = 'lock:lock:{k}';

class CountingStore extends RedisLockStore {
  renewals = 0;

  override renew(holds: readonly HoldRecord[]): ReturnType<RedisLockStore['renew']> {
    this.renewals++;
    return super.renew(holds);
  }
}

let clock: ServerClock;
let server: RedisServer;
let stores: RedisLockStore[];
let locks: LockService;
let other: LockService;

beforeAll(async () => {
  clock = new ServerClock();
  server = await clock.startServer();
});
afterAll(async () => {
  await server?.stop();
  clock?.remove();
});

beforeEach(async () => {
  clock.set(0);
  await server.client.flushall();
  stores = [];
  locks = makeLocks(await openStore());
  other = makeLocks(await openStore());
});
afterEach(() => Promise.all(stores.map((store) => store.close())));

async function openStore<T extends RedisLockStore>(store: T = new RedisLockStore(server.url) as T): Promise<T> {
  await store.open({ prefix: 'lock', warn: () => undefined });
  stores.push(store);
  return store;
}

describe("a server's clock that jumps ahead", () => {
  test('ends leases: the holder is notified at its next renewal, and runs beside the next owner no longer than that', async () => {
    const held = await locks.acquire('k', { ttl: 6_000 });
    const next = other.acquire('k', { wait: 10_000 }).then((lock) => ({ lock, at: performance.now() }));
    await sleep(50);
    clock.set(HOUR_MS);
    const { lock, at } = await next;
    expect(lock.fence).toBeGreaterThan(held.fence);
    await until('the loss', () => held.signal.aborted);
    expect(performance.now() - at).toBeLessThan(2_000 + SLACK_MS);
    expect(held.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
    expect(held.isHeld()).toBe(false);
    await held.release();
    expect((await other.operations.inspect('k'))?.fence).toBe(lock.fence);
    await lock.release();
  });

  test('ends queues: waiters queue anew when they ask next, and all have their turn', async () => {
    const held = await locks.acquire('k');
    const waiting: Promise<number>[] = [];
    for (let count = 0; count < 4; count++) {
      const service = makeLocks(await openStore());
      waiting.push(service.withLock('k', { wait: 20_000 }, ({ fence }) => fence));
      await until('its place', async () => (await locks.operations.inspect('k'))?.waiters.length === count + 1);
    }
    expect((await locks.operations.inspect('k'))?.waiters).toHaveLength(4);
    clock.set(HOUR_MS);
    const startedAt = performance.now();
    const fences = await Promise.all(waiting);
    expect(performance.now() - startedAt).toBeLessThan(SELDOM_MS + CLAIM_MS + RECHECK_MS + SLACK_MS);
    expect(new Set([held.fence, ...fences]).size).toBe(5);
    expect(Math.min(...fences)).toBeGreaterThan(held.fence);
    await held.release();
  });
});

describe("a server's clock that is set back", () => {
  test('leaves the lock to a live holder for as long as it renews, and the next owner has a higher fence', async () => {
    const store = await openStore(new CountingStore(server.url));
    const held = await makeLocks(store).acquire('k', { ttl: 4_000 });
    let entered = false;
    const next = other.withLock('k', { wait: 30_000 }, ({ fence }) => {
      entered = true;
      return fence;
    });
    await until('its place', async () => (await locks.operations.inspect('k'))?.waiters.length === 1);
    clock.set(-HOUR_MS);
    // It has gone on for longer than its ttl, by renewals alone.
    const renewals = store.renewals;
    await until('four renewals', () => store.renewals >= renewals + 4);
    expect(held.isHeld()).toBe(true);
    expect(entered).toBe(false);
    expect(await server.client.pttl(LOCK)).toBeLessThanOrEqual(4_000);
    await held.release();
    expect(await next).toBeGreaterThan(held.fence);
  });

  test('ends the lock of a crashed holder within its recorded ttl of the next attempt', async () => {
    const holder = await startHolder(server.url, 'k', 1_500);
    const next = locks.withLock('k', { wait: 20_000 }, ({ fence }) => fence);
    await sleep(50);
    holder.child.kill('SIGKILL');
    clock.set(-HOUR_MS);
    const startedAt = performance.now();
    expect(await next).toBeGreaterThan(holder.fence);
    expect(performance.now() - startedAt).toBeLessThan(1_500 + RECHECK_MS + 3 * SLACK_MS);
  });

  test('ends the turn of a process that does not take it within the claim window of the next attempt', async () => {
    const held = await locks.acquire('k');
    const stopped = newHold('k', { owner: 'stopped', id: 'stopped', by: 'stopped' });
    await (await openStore()).acquire(stopped, { name: 'stopped' });
    await held.release();
    clock.set(-HOUR_MS);
    // Before the next attempt, which sets it right.
    expect(await server.client.pttl(LOCK)).toBeGreaterThan(HOUR_MS / 2);
    const startedAt = performance.now();
    expect(await other.withLock('k', { wait: 20_000 }, ({ fence }) => fence)).toBeGreaterThan(held.fence);
    expect(performance.now() - startedAt).toBeLessThan(CLAIM_MS + 2 * RECHECK_MS + SLACK_MS);
  });

  test('keeps fences rising, also where it was ahead before', async () => {
    const fences: number[] = [];
    for (const ahead of [0, HOUR_MS, 0, -HOUR_MS, -HOUR_MS, 0]) {
      clock.set(ahead);
      fences.push(await locks.withLock('k', { wait: 20_000 }, ({ fence }) => fence));
    }
    expect(fences).toEqual([...new Set(fences)].toSorted((first, second) => first - second));
  });

  test('changes nothing in for how long others see the holder, though its fence is ahead of the clock', async () => {
    const fence = await locks.withLock('k', (lock) => lock.fence);
    clock.set(-HOUR_MS);
    await locks.withLock('k', async (lock) => {
      // The fence is ahead of the clock, and the time of the grant is the clock's.
      expect(lock.fence).toBeGreaterThan(fence);
      await sleep(300);
      const refused = (await other.acquire('k', { wait: 0 }).catch((error: unknown) => error)) as LockNotAcquiredError;
      expect(refused.holder?.heldMs).toBeGreaterThan(250);
    });
  });
});

test.each([
  ['ahead', HOUR_MS],
  ['back', -HOUR_MS],
])("a client's clock that jumps %s asks for one renewal at once, and touches neither leases nor waits", async (_, jumpMs) => {
  const store = await openStore(new CountingStore(server.url));
  const service = makeLocks(store);
  const held = await service.acquire('k', { ttl: '1m' });
  const waiting = other.withLock('k', { wait: 20_000 }, () => 'ran');
  const before = store.renewals;
  const now = Date.now.bind(Date);
  const stubbed = jest.spyOn(Date, 'now').mockImplementation(() => now() + jumpMs);
  await until('a renewal', () => store.renewals > before);
  await sleep(1_500);
  expect(store.renewals).toBe(before + 1);
  expect(held.remainingMs()).toBeGreaterThan(50_000);
  await held.release();
  expect(await waiting).toBe('ran');
  stubbed.mockRestore();
});
