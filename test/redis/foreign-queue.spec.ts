import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { outsideLocks } from '../../lib/core/calls/call-tree';
import { LockConfigurationError, type LockError } from '../../lib/core/words/errors';
import type { LockTrouble } from '../../lib/core/words/lock-event';
import type { LockService } from '../../lib/nest/lock.service';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { makeLocks } from '../support/make-locks';
import { noting } from '../support/noting';
import { RedisServer } from '../support/redis-server';
import { sourceOf } from '../support/redis-source';
import { until } from '../support/until';

const LOCK = 'lock:lock:{k}';
const QUEUE = 'lock:queue:{k}';

let server: RedisServer;
let store: RedisLockStore;
let locks: LockService;
let troubles: LockTrouble[];

beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(() => server.stop());

beforeEach(async () => {
  await server.client.flushall();
  troubles = [];
  store = new RedisLockStore(sourceOf(server.url));
  await store.open({ prefix: 'lock', warn: () => undefined });
  locks = makeLocks(store, { onTrouble: noting(troubles) });
});
afterEach(() => store.close());

test('a foreign key in the place of a queue keeps no lock taken: a release frees it, and loses nothing', async () => {
  const result = await locks.withLock('k', { ttl: '10m' }, async () => {
    await server.client.set(QUEUE, 'mine');
    return 'result';
  });
  expect(result).toBe('result');
  expect(troubles).toEqual([]);
  expect(await server.client.exists(LOCK)).toBe(0);
  expect(await server.client.get(QUEUE)).toBe('mine');
});

test('a forced release frees it as well', async () => {
  const lock = await locks.acquire('k', { ttl: '10m' });
  await server.client.set(QUEUE, 'mine');
  expect(await locks.operations.forceRelease('k', { fence: lock.fence })).toBe(true);
  expect(await server.client.exists(LOCK)).toBe(0);
});

test('the next call in the process fails with an error that says what to do, and the lock is free', async () => {
  let behind: Promise<unknown> | undefined;
  await locks.withLock('k', { ttl: '10m' }, async () => {
    behind = outsideLocks(() => locks.acquire('k', { ttl: '10m' })).catch((error: Error) => error);
    await sleep(20);
    await server.client.set(QUEUE, 'mine');
  });
  const error = (await behind) as Error;
  expect(error).toBeInstanceOf(LockConfigurationError);
  expect((error as LockError).detail).toMatch(/^Lock "k": Redis refused .*WRONGTYPE.*Choose another prefix/);
  await until('that the lock is free', async () => (await server.client.exists(LOCK)) === 0);
  await server.client.del(QUEUE);
  expect(await locks.withLock('k', { wait: 0 }, () => 'ran')).toBe('ran');
});
