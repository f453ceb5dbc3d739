import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LockService } from '../../lib/nest/lock.service';
import { RedisLockStore } from '../../lib/stores/redis/redis-lock-store';
import { startHolder, type Holder } from '../support/holder';
import { makeLocks } from '../support/make-locks';
import { RedisServer } from '../support/redis-server';
import { TcpProxy } from '../support/tcp-proxy';
import { until } from '../support/until';

/** For a machine that is busy with other things. */
const SLACK_MS = 700;

let server: RedisServer;
let store: RedisLockStore;
let locks: LockService;
let holders: Holder[];
let remote: RedisLockStore | undefined;
let proxy: TcpProxy | undefined;

beforeEach(async () => {
  holders = [];
  remote = undefined;
  proxy = undefined;
  server = await RedisServer.start();
  store = new RedisLockStore(server.url);
  await store.open({ prefix: 'lock', warn: () => undefined });
  locks = makeLocks(store);
});
afterEach(async () => {
  for (const { child } of holders) {
    child.kill('SIGKILL');
  }
  await remote?.close();
  await proxy?.stop();
  await store.close();
  await server.stop();
});

async function start(ttl: number, ticket?: string): Promise<Holder> {
  const holder = await startHolder(server.url, 'k', ttl, ticket);
  holders.push(holder);
  return holder;
}

const remainingMs = async (): Promise<number> => (await locks.inspect('k'))?.remainingMs ?? 0;

test('a joiner with a small ttl renews for itself: it stays in for several ttls, also after the holder has left', async () => {
  const first = await start(60_000);
  const guest = await start(400, first.ticket);
  await sleep(1_000);
  expect(await remainingMs()).toBeGreaterThan(55_000);
  expect(await first.leave()).toBe(true);
  await sleep(1_300);
  expect(await locks.tryAcquire('k')).toBeNull();
  expect(await locks.inspect('k')).toMatchObject({ fence: first.fence, holds: 1 });
  expect(await guest.leave()).toBe(true);
  expect(await locks.inspect('k')).toBeNull();
});

test('a holder with a small ttl stays in beside a joiner with a long one, which outlives it', async () => {
  const first = await start(400);
  const guest = await start(60_000, first.ticket);
  await sleep(1_300);
  expect(await remainingMs()).toBeGreaterThan(55_000);
  expect(await first.leave()).toBe(true);
  await sleep(700);
  expect(await locks.inspect('k')).toMatchObject({ fence: first.fence, holds: 1 });
  expect(await guest.leave()).toBe(true);
  expect(await locks.inspect('k')).toBeNull();
});

test('both with small ttls keep the lock by turns for as long as one of them is in', async () => {
  const first = await start(600);
  const guest = await start(400, first.ticket);
  expect(await first.leave()).toBe(true);
  await sleep(1_800);
  expect(await locks.tryAcquire('k')).toBeNull();
  expect(await guest.leave()).toBe(true);
  expect(await locks.inspect('k')).toBeNull();
});

test('a joiner that crashes keeps the lock for its own ttl, and is the one that is named once the holder has left', async () => {
  const first = await start(1_000);
  const guest = await start(30_000, first.ticket);
  expect((await locks.inspect('k'))?.by).toContain(`(pid ${first.child.pid})`);
  guest.child.kill('SIGKILL');
  expect(await first.leave()).toBe(true);
  const named = expect.stringMatching(new RegExp(`\\(pid ${guest.child.pid}\\)$`)) as string;
  expect(await locks.inspect('k')).toMatchObject({ by: named });
  for await (const lock of locks.list()) {
    expect(lock).toMatchObject({ key: 'k', by: named });
  }
  expect(await remainingMs()).toBeGreaterThan(15_000);
});

test.each(['holder', 'joiner'])(
  'a %s that lost a short lease in an outage is taken out of the lock that goes on with a long one',
  async (who) => {
    proxy = await TcpProxy.start(server.port);
    remote = new RedisLockStore(proxy.url);
    await remote.open({ prefix: 'lock', warn: () => undefined });
    const far = makeLocks(remote);
    const isHolder = who === 'holder';
    const first = await (isHolder ? far : locks).acquire('k', { ttl: isHolder ? 400 : 60_000 });
    const { ticket } = first;
    const second = await (isHolder ? locks : far).acquire('k', { ticket, ttl: isHolder ? 60_000 : 400 });
    const [lost, other] = isHolder ? [first, second] : [second, first];
    proxy.mode = 'blackhole';
    await sleep(2_500);
    expect([lost.isHeld(), other.isHeld()]).toEqual([false, true]);
    expect(await locks.inspect('k')).toMatchObject({ holds: 2 });
    proxy.mode = 'pass';
    await until('that it is out', async () => (await locks.inspect('k'))?.holds === 1, 6_000);
    await other.release();
    expect(await locks.withLock('k', { wait: 0 }, () => 'free')).toBe('free');
  },
);

test.each(['the holder', 'the joiner'])(
  'where %s crashes, the other one keeps the lock, which is free within a lease of its end',
  async (who) => {
    const first = await start(1_000);
    const guest = await start(1_000, first.ticket);
    const [crashed, other] = who === 'the holder' ? [first, guest] : [guest, first];
    crashed.child.kill('SIGKILL');
    await sleep(2_500);
    expect(await locks.tryAcquire('k')).toBeNull();
    const waiting = locks.withLock('k', { wait: 10_000 }, () => performance.now());
    expect(await other.leave()).toBe(true);
    const leftAt = performance.now();
    expect((await waiting) - leftAt).toBeLessThan(1_000 + SLACK_MS);
  },
);
