import { LockStoreError } from '../../lib/core/words/errors';
import type { LockTrouble } from '../../lib/core/words/lock-event';
import { RedisLockStore } from '../../lib/stores/redis/redis-lock-store';
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
