import { AsyncLocalStorage } from 'node:async_hooks';
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Cluster } from 'ioredis';
import { createClient, createCluster } from 'redis';
import type { RedisSource } from '../../lib/redis/connection/redis-source';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { makeLocks } from '../support/make-locks';
import { newHold } from '../support/new-hold';
import { freePort, RedisServer } from '../support/redis-server';
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

const SOURCES: readonly [string, () => RedisSource][] = [
  ['a Cluster of ioredis', cluster],
  ['Sentinel', () => ({ sentinels: [{ host, port }], name: 'locks' })],
  ['a client of node-redis', () => createClient({ socket: { host, port } })],
  ['a Cluster of node-redis', () => createCluster({ rootNodes: [{ socket: { host, port } }] })],
];

test.each(SOURCES)('calls that failed while %s was never reached leave nothing behind', async (_, source) => {
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

test.each(SOURCES)('a message that %s was not ready to send names the time it waited', async (_, source) => {
  await open(source());
  await expect(store.send('x')).rejects.toMatchObject({
    unknown: false,
    detail: expect.stringMatching(/there is no connection: none could be made within \d+ ms/) as unknown,
  });
});

test.each([
  ['not once', true],
  ['no more', false],
])('health checks and messages that failed while a Cluster was reached %s are not sent later', async (_, isEarly) => {
  const config = join(tmpdir(), `unreachable-${port}.conf`);
  const files = ['--cluster-config-file', config, '--cluster-port', String(port)];
  const server = await RedisServer.start('--cluster-enabled', 'yes', '--cluster-announce-ip', host, ...files);
  try {
    await server.client.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383);
    const inOrder = async (): Promise<boolean> => (await server.client.cluster('INFO')).includes('cluster_state:ok');
    await until('that the cluster is in order', inOrder);
    const source = new Cluster([{ host, port: server.port }], { lazyConnect: true });
    if (isEarly) {
      await server.kill();
      await open(source);
    } else {
      await open(source);
      await server.kill();
    }
    const fails = async (ask: () => Promise<unknown>): Promise<void> => expect(ask()).rejects.toMatchObject({ code: 'LOCK_STORE' });
    // The first one may find that out.
    await fails(() => store.send('x'));
    await Promise.all(Array.from({ length: 50 }, () => Promise.all([fails(() => store.health()), fails(() => store.send('x'))])));
    await server.start();
    await makeLocks(store).withLock('k', { wait: '30s' }, () => undefined);
    const counts = await server.commandCounts();
    expect(counts.get('info') ?? 0).toBeLessThan(25);
    expect(counts.get('publish') ?? 0).toBeLessThan(25);
  } finally {
    await server.stop();
    rmSync(config, { force: true });
  }
});
