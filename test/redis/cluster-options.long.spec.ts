import { Cluster, type ClusterOptions } from 'ioredis';
import { LockConfigurationError } from '../../lib/core/words/errors';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { makeLocks } from '../support/make-locks';
import { isOfSlowness } from '../support/no-warning';
import { RedisCluster } from '../support/redis-cluster';
import type { RedisServer } from '../support/redis-server';
import { saying } from '../support/saying';

let cluster: RedisCluster;
let client: Cluster;
let store: RedisLockStore | undefined;
let warnings: string[];

beforeAll(async () => {
  cluster = await RedisCluster.start();
});
beforeEach(() => {
  warnings = [];
});
afterEach(async () => {
  await store?.close();
  client.disconnect();
  await Promise.all((await cluster.masters()).map(({ client: master }) => master.config('SET', 'maxmemory-policy', 'noeviction')));
});
afterAll(() => cluster.stop());

/** A store on a cluster client of an application that has these options. */
async function open(options: ClusterOptions): Promise<RedisLockStore> {
  client = new Cluster(
    cluster.nodes.map(({ port }) => ({ host: '127.0.0.1', port })),
    { lazyConnect: true, ...options } as object,
  );
  store = new RedisLockStore(client);
  await store.open({ prefix: 'lock', warn: (message) => isOfSlowness(message) || warnings.push(message) });
  return store;
}

test('a client that queues nothing before it is connected is checked at the start, and searched', async () => {
  await Promise.all((await cluster.masters()).map(({ client: master }) => master.config('SET', 'maxmemory-policy', 'allkeys-lru')));
  const locks = makeLocks(await open({ enableOfflineQueue: false }));
  expect(warnings).toEqual([expect.stringMatching(/maxmemory-policy is allkeys-lru/)]);
  const held = await locks.acquire('k', { ttl: '60s' });
  const found: string[] = [];
  for await (const locked of locks.operations.list({ prefix: 'k' })) {
    found.push(locked.key);
  }
  expect(found).toEqual(['k']);
  await held.release();
});

test('a client that reconnects on errors, limits its commands, and reads numbers as text does so for itself only', async () => {
  const masters = await cluster.masters();
  await Promise.all(masters.map(({ client: master }) => master.script('FLUSH')));
  const opened = await open({
    redisOptions: { reconnectOnError: () => 2, commandTimeout: 1, stringNumbers: true, enableReadyCheck: false },
  });
  const locks = makeLocks(opened);
  const keys = Array.from({ length: 12 }, (_, at) => `key ${at}`);
  expect(await Promise.all(keys.map((key) => locks.withLock(key, { wait: '30s' }, () => key)))).toEqual(keys);
  expect((await opened.health()).members).toHaveLength(masters.length);
  expect(warnings).toEqual([]);
});

test('a client that reads numbers as text finds each master by its slots, before a key has led there', async () => {
  const opened = await open({ redisOptions: { stringNumbers: true } });
  expect((await opened.health()).members).toHaveLength((await cluster.masters()).length);
});

test('a client that connects to a node again and again does so for itself only: a failover is followed', async () => {
  const locks = makeLocks(await open({ clusterNodeRetryStrategy: () => 100 }));
  await locks.withLock('k', () => undefined);
  const master = await cluster.masterOf('{k}');
  await cluster.failover(master);
  expect(await locks.withLock('k', { wait: '20s' }, () => 'in')).toBe('in');
  await cluster.restart(master);
});

test('a client that waits before it follows a moved slot does so for itself only', async () => {
  const locks = makeLocks(await open({ retryDelayOnMoved: 60_000 }));
  await locks.withLock('k', () => undefined);
  const owner = await cluster.masterOf('{k}');
  await cluster.reshard('{k}', (await cluster.masters()).find((master) => master !== owner) as RedisServer);
  expect(await locks.withLock('k', { wait: '20s' }, () => 'in')).toBe('in');
});

test.each(['a{b:', '{}', 'a}{b'])('a keyPrefix that takes the keys of a lock into several slots is refused: %s', async (keyPrefix) => {
  await expect(open({ keyPrefix })).rejects.toThrow(saying(/CROSSSLOT.*keyPrefix without braces/));
  await expect(open({ keyPrefix })).rejects.toBeInstanceOf(LockConfigurationError);
});

test('a keyPrefix with a whole pair of braces is none', async () => {
  const locks = makeLocks(await open({ keyPrefix: '{x}' }));
  expect(await locks.withLock('k', () => 'in')).toBe('in');
});
