import { AsyncLocalStorage } from 'node:async_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Cluster } from 'ioredis';
import { createClient, createCluster } from 'redis';
import type { RedisSource } from '../../lib/stores/redis/connection/redis-source';
import { RedisLockStore } from '../../lib/stores/redis/redis-lock-store';
import { newHold } from '../support/new-hold';
import { freePort } from '../support/redis-server';
import { until } from '../support/until';

const host = '127.0.0.1';
let port: number;
let store: RedisLockStore;

beforeEach(async () => {
  port = await freePort();
});
afterEach(() => store.close());

async function open(source: RedisSource): Promise<void> {
  store = new RedisLockStore(source);
  await store.open({ prefix: 'lock', warn: () => undefined });
}

const cluster = (): Cluster => new Cluster([{ host, port }], { lazyConnect: true });

test.each<[string, () => RedisSource]>([
  ['a Cluster of ioredis', cluster],
  ['Sentinel', () => ({ sentinels: [{ host, port }], name: 'locks' })],
  ['a client of node-redis', () => createClient({ socket: { host, port } })],
  ['a Cluster of node-redis', () => createCluster({ rootNodes: [{ socket: { host, port } }] })],
])('calls that failed while %s was never reached leave nothing behind', async (_, source) => {
  await open(source());
  const context = new AsyncLocalStorage();
  const requests: WeakRef<object>[] = [];
  const call = (): Promise<unknown> => {
    const request = {};
    requests.push(new WeakRef(request));
    return context.run(request, () => store.acquire(newHold('k', { limitMs: 100 })).catch(() => undefined));
  };
  await Promise.all(Array.from({ length: 100 }, call));
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  // The last one may be that of a timer.
  await until('that the calls are forgotten', () => {
    gc();
    return requests.filter((request) => request.deref() !== undefined).length < 10;
  });
});
