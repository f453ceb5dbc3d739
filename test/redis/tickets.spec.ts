import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LockService } from '../../lib/nest/lock.service';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { startHolder, type Holder } from '../support/holder';
import { makeLocks } from '../support/make-locks';
import { RedisServer } from '../support/redis-server';
import { sourceOf } from '../support/redis-source';
import { TcpProxy } from '../support/tcp-proxy';
import { sideBySide } from '../support/side-by-side';
import { until } from '../support/until';

/** A small ttl, which no stall of a machine ends; what is left of it is over after a little more. */
const SMALL_MS = 3_000;
const OVER_MS = 3_500;
/** For a machine that is busy with other things. */
const SLACK_MS = 3_000;

let server: RedisServer;
let store: RedisLockStore;
let locks: LockService;
const holders: Holder[] = [];

// Each test has a key of its own, so that all of them wait at the same time.
beforeAll(async () => {
  server = await RedisServer.start();
  store = new RedisLockStore(sourceOf(server.url));
  await store.open({ prefix: 'lock', warn: () => undefined });
  locks = makeLocks(store);
});
afterAll(async () => {
  for (const { child } of holders) {
    child.kill('SIGKILL');
  }
  await store.close();
  await server.stop();
});

async function start(key: string, ttl: number, ticket?: string): Promise<Holder> {
  const holder = await startHolder(server.url, key, ttl, ticket);
  holders.push(holder);
  return holder;
}

const beside = sideBySide();

const remainingMs = async (key: string): Promise<number> => (await locks.operations.inspect(key))?.remainingMs ?? 0;

beside('a joiner with a small ttl renews for itself: it stays in for several ttls, also after the holder has left', async () => {
  const key = 'a small joiner';
  const first = await start(key, 60_000);
  const guest = await start(key, SMALL_MS, first.ticket);
  await sleep(OVER_MS);
  // A lease of a minute is renewed when 40 s are left.
  expect(await remainingMs(key)).toBeGreaterThan(30_000);
  expect(await first.leave()).toBe(true);
  await sleep(OVER_MS);
  expect(await locks.tryAcquire(key)).toBeNull();
  expect(await locks.operations.inspect(key)).toMatchObject({ fence: first.fence, holds: 1 });
  expect(await guest.leave()).toBe(true);
  expect(await locks.operations.inspect(key)).toBeNull();
});

beside('a holder with a small ttl stays in beside a joiner with a long one, which outlives it', async () => {
  const key = 'a small holder';
  const first = await start(key, SMALL_MS);
  const guest = await start(key, 60_000, first.ticket);
  await sleep(OVER_MS);
  expect(await remainingMs(key)).toBeGreaterThan(30_000);
  expect(await first.leave()).toBe(true);
  await sleep(OVER_MS);
  expect(await locks.operations.inspect(key)).toMatchObject({ fence: first.fence, holds: 1 });
  expect(await guest.leave()).toBe(true);
  expect(await locks.operations.inspect(key)).toBeNull();
});

beside('both with small ttls keep the lock by turns for as long as one of them is in', async () => {
  const key = 'both small';
  const first = await start(key, SMALL_MS + 500);
  const guest = await start(key, SMALL_MS, first.ticket);
  expect(await first.leave()).toBe(true);
  await sleep(OVER_MS + 500);
  expect(await locks.tryAcquire(key)).toBeNull();
  expect(await guest.leave()).toBe(true);
  expect(await locks.operations.inspect(key)).toBeNull();
});

beside('a joiner that crashes keeps the lock for its own ttl, and is the one that is named once the holder has left', async () => {
  const key = 'a crash';
  const first = await start(key, SMALL_MS);
  const guest = await start(key, 60_000, first.ticket);
  expect((await locks.operations.inspect(key))?.by).toContain(`(pid ${first.child.pid})`);
  guest.child.kill('SIGKILL');
  expect(await first.leave()).toBe(true);
  const named = expect.stringMatching(new RegExp(`\\(pid ${guest.child.pid}\\)$`)) as string;
  expect(await locks.operations.inspect(key)).toMatchObject({ by: named });
  const listed = [];
  for await (const lock of locks.operations.list()) {
    listed.push(lock);
  }
  expect(listed.filter((lock) => lock.key === key)).toMatchObject([{ by: named }]);
  expect(await remainingMs(key)).toBeGreaterThan(30_000);
});

for (const who of ['holder', 'joiner']) {
  beside(`a ${who} that lost a short lease in an outage is taken out of the lock that goes on with a long one`, async () => {
    const key = `an outage of a ${who}`;
    const proxy = await TcpProxy.start(server.port);
    const remote = new RedisLockStore(sourceOf(proxy.url));
    await remote.open({ prefix: 'lock', warn: () => undefined });
    const far = makeLocks(remote);
    const isHolder = who === 'holder';
    const first = await (isHolder ? far : locks).acquire(key, { ttl: isHolder ? SMALL_MS : 60_000 });
    const ticket = first.makeTicket();
    const second = await (isHolder ? locks : far).acquire(key, { ticket, ttl: isHolder ? 60_000 : SMALL_MS });
    const [lost, other] = isHolder ? [first, second] : [second, first];
    proxy.mode = 'blackhole';
    await until('the loss', () => lost.signal.aborted);
    expect([lost.isHeld(), other.isHeld()]).toEqual([false, true]);
    expect(await locks.operations.inspect(key)).toMatchObject({ holds: 2 });
    proxy.mode = 'pass';
    await until('that it is out', async () => (await locks.operations.inspect(key))?.holds === 1);
    await other.release();
    expect(await locks.withLock(key, () => 'free')).toBe('free');
    await remote.close();
    await proxy.stop();
  });
}

for (const who of ['the holder', 'the joiner']) {
  beside(`where ${who} crashes, the other one keeps the lock, which is free within a lease of its end`, async () => {
    const key = `a crash of ${who}`;
    const first = await start(key, SMALL_MS);
    const guest = await start(key, SMALL_MS, first.ticket);
    const [crashed, other] = who === 'the holder' ? [first, guest] : [guest, first];
    crashed.child.kill('SIGKILL');
    await sleep(OVER_MS);
    expect(await locks.tryAcquire(key)).toBeNull();
    const waiting = locks.withLock(key, { wait: 30_000 }, () => performance.now());
    expect(await other.leave()).toBe(true);
    const leftAt = performance.now();
    expect((await waiting) - leftAt).toBeLessThan(SMALL_MS + SLACK_MS);
  });
}
