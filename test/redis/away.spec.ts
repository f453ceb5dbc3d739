import { setTimeout as sleep } from 'node:timers/promises';
import { LockStoreError } from '../../lib/core/words/errors';
import type { LockTrouble } from '../../lib/core/words/lock-event';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { makeLocks } from '../support/make-locks';
import { RedisServer } from '../support/redis-server';
import { sourceOf } from '../support/redis-source';
import { TcpProxy } from '../support/tcp-proxy';
import { until } from '../support/until';

let server: RedisServer;
let proxy: TcpProxy;
let store: RedisLockStore;

beforeEach(async () => {
  server = await RedisServer.start();
  proxy = await TcpProxy.start(server.port);
  store = new RedisLockStore(sourceOf(proxy.url));
  await store.open({ prefix: 'lock', warn: () => undefined });
});
afterEach(async () => {
  await store.close();
  await proxy.stop();
  await server.stop();
});

const failure = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => undefined,
    (error: unknown) => error,
  );

test.each([
  ['refuses connections', 'refuse'],
  ['answers nothing', 'blackhole'],
] as const)("with onUnavailable: 'throw', calls do not wait for a server that %s, and are served when it is back", async (_, mode) => {
  const troubles: LockTrouble[] = [];
  const locks = makeLocks(store, { wait: 600_000, onUnavailable: 'throw', onTrouble: (trouble) => troubles.push(trouble) });
  await locks.withLock('k', () => undefined);
  proxy.mode = mode;
  proxy.cut();
  // Each of these would wait for ten minutes.
  for (let call = 0; call < 50; call++) {
    expect(await failure(locks.withLock(`k${call}`, () => undefined))).toBeInstanceOf(LockStoreError);
  }
  proxy.mode = 'pass';
  await until('service', async () => (await failure(locks.withLock('k', () => undefined))) === undefined);
  expect(await Promise.all(['a', 'b', 'c'].map((key) => locks.withLock(key, () => 'in')))).toEqual(['in', 'in', 'in']);
  expect(troubles.slice(0, 2).map(({ type }) => type)).toEqual(['storeUnavailable', 'storeAnswered']);
});

test('calls that wait for a server which grants nothing do not ask it each by itself', async () => {
  const locks = makeLocks(store, { wait: 60_000 });
  await locks.withLock('k', () => undefined);
  await server.client.config('SET', 'maxmemory', '1');
  const calls = Array.from({ length: 300 }, (_, at) => locks.withLock(`k${at}`, () => undefined));
  await until('that the store counts as away', async () => ((await locks.operations.health()).refusingMs ?? 0) > 2_000);
  const scripts = async (): Promise<number> =>
    [...(await server.client.info('commandstats')).matchAll(/^cmdstat_evalsha:calls=(\d+)/gm)].reduce(
      (sum, [, count]) => sum + Number(count),
      0,
    );
  const [before, startedAt] = [await scripts(), performance.now()];
  await sleep(2_000);
  const perSecond = ((await scripts()) - before) / ((performance.now() - startedAt) / 1_000);
  // One call in 500 ms, an attempt that nobody waits for each second, and what a health check asks.
  expect(perSecond).toBeLessThan(10);
  await server.client.config('SET', 'maxmemory', '0');
  await Promise.all(calls);
});
