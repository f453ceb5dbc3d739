import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { GlideClient } from '@valkey/valkey-glide';
import { Cluster, Redis } from 'ioredis';
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis-5';
import { Cluster as ValkeyCluster, Redis as Valkey } from 'iovalkey';
import { createClient, createClientPool, createCluster, createSentinel } from 'redis';
import { createClient as createClient6, createCluster as createCluster6, createSentinel as createSentinel6 } from 'redis-6';
import { QuorumLockStore } from '../../lib/quorum/quorum-lock-store';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import type { RedisSource } from '../../lib/redis/connection/redis-source';
import { makeLocks } from '../support/make-locks';
import { RedisCluster } from '../support/redis-cluster';
import { RedisServer } from '../support/redis-server';
import { refusalOf } from '../support/refusal-of';
import { saying } from '../support/saying';
import { searched } from '../support/searched';
import { until } from '../support/until';

/** The methods of the clients themselves that the tests use. */
type TestedClient = RedisSource & { ping(): Promise<string>; disconnect(): unknown };

let server: RedisServer;
let cluster: RedisCluster;

beforeAll(async () => {
  [server, cluster] = await Promise.all([RedisServer.start(), RedisCluster.start()]);
});
afterAll(async () => {
  await Promise.all([server?.stop(), cluster?.stop()]);
});

const host = '127.0.0.1';
const startNodes = (): { host: string; port: number }[] => cluster.nodes.map(({ port }) => ({ host, port }));

const rootNodes = (): { socket: { host: string; port: number } }[] => startNodes().map((socket) => ({ socket }));

/** A cluster client of node-redis has no command of its own without a key. */
function testedCluster(client: ReturnType<typeof createCluster> | ReturnType<typeof createCluster6>): TestedClient {
  client.on('error', () => undefined);
  const ping = (): Promise<string> => client.sendCommand(undefined, true, ['PING']);
  return Object.assign(client, { ping, disconnect: () => client.destroy() }) as unknown as TestedClient;
}

const OTHER_REPLIES = { stringNumbers: true, protocol: 3, replyMapping: 'resp3' } as const;

const CLIENTS: readonly [string, () => TestedClient][] = [
  ['ioredis 6', () => new Redis(server.port, host)],
  ['ioredis 5', () => new Redis5(server.port, host)],
  ['iovalkey', () => new Valkey(server.port, host)],
  ['ioredis 6 that reads replies in other ways', () => new Redis(server.port, host, OTHER_REPLIES)],
  ['ioredis 5 that reads numbers as text', () => new Redis5(server.port, host, { stringNumbers: true })],
  ['iovalkey that reads numbers as text', () => new Valkey(server.port, host, { stringNumbers: true })],
  ['node-redis 5', () => createClient({ url: server.url }).on('error', () => undefined)],
  ['node-redis 6', () => createClient6({ url: server.url }).on('error', () => undefined)],
  ['node-redis 5, a Cluster', () => testedCluster(createCluster({ rootNodes: rootNodes() }))],
  ['node-redis 6, a Cluster', () => testedCluster(createCluster6({ rootNodes: rootNodes() }))],
  ['a Cluster of ioredis 6', () => new Cluster(startNodes())],
  ['a Cluster of ioredis 5', () => new Cluster5(startNodes())],
  ['a Cluster of iovalkey', () => new ValkeyCluster(startNodes())],
];

test('the versions are those that are claimed', async () => {
  const versions = await Promise.all(
    ['ioredis', 'ioredis-5', 'iovalkey', 'redis', 'redis-6'].map(
      async (name) =>
        ((await import(`${name}/package.json`, { with: { type: 'json' } })) as { default: { version: string } }).default.version,
    ),
  );
  expect(versions.map((version) => Number.parseInt(version, 10))).toEqual([6, 5, 0, 5, 6]);
  expect(await server.client.info('server')).toMatch(/redis_version:7\./);
});

describe.each(CLIENTS)('with %s', (name, make) => {
  test('locks exclude, are handed over in order, are released by force and searched, and outlive a cut connection', async () => {
    const [client, other] = [make(), make()];
    if (name.startsWith('node-redis')) {
      await Promise.all([client, other].map((each) => (each as unknown as { connect(): Promise<unknown> }).connect()));
    }
    const stores = [new RedisLockStore(client), new RedisLockStore(other)] as const;
    const warnings: string[] = [];
    await Promise.all(stores.map((store) => store.open({ prefix: 'lock', warn: (message) => warnings.push(message) })));
    const [here, there] = [makeLocks(stores[0], { wait: 60_000 }), makeLocks(stores[1], { wait: 60_000 })];

    let inside = 0;
    const fences: number[] = [];
    const calls = Array.from({ length: 20 }, (_, at) =>
      (at % 2 === 0 ? here : there).withLock('k', async (lock) => {
        expect(++inside).toBe(1);
        fences.push(lock.fence);
        await new Promise((resolve) => setTimeout(resolve, 5));
        inside--;
      }),
    );
    await Promise.all(calls);
    expect(fences).toEqual(fences.toSorted((one, next) => one - next));
    expect(new Set(fences).size).toBe(20);

    const lost = here.withLock(
      'k',
      (lock) => new Promise((_, reject) => lock.signal.addEventListener('abort', () => reject(lock.signal.reason as Error))),
    );
    lost.catch(() => undefined);
    await until('the lock is held', async () => (await there.operations.inspect('k')) !== null);
    const { fence } = (await there.operations.inspect('k')) as { fence: number };
    expect(await there.operations.forceRelease('k', { fence })).toBe(true);
    await expect(lost).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'forced' });

    expect(await there.withLock('k', () => searched(stores[0]))).toEqual(['k']);

    const servers = name.includes('Cluster') ? cluster.nodes : [server];
    await Promise.all(servers.map((each) => each.client.call('client', 'kill', 'type', 'normal', 'skipme', 'yes')));
    expect(await there.withLock('k', () => 'in')).toBe('in');

    await Promise.all([here.shutdown(), there.shutdown()]);
    await until('the client of the user works', async () => (await client.ping().catch(() => '')) === 'PONG');
    expect(warnings).toEqual([]);
    client.disconnect();
    other.disconnect();
  }, 120_000);
});

describe('a node of a Cluster tells clients for one server that they need a Cluster client', () => {
  const CURE = saying(
    /^server \d of 3 of the quorum: |The server is a node of a Redis Cluster\. Give RedisLockStore a Cluster client: new Cluster\(/,
  );

  test.each<[string, (url: string) => RedisSource]>([
    ['ioredis 6', (url) => new Redis(url, { lazyConnect: true })],
    ['ioredis 5', (url) => new Redis5(url, { lazyConnect: true })],
    ['iovalkey', (url) => new Valkey(url, { lazyConnect: true })],
    ['node-redis 5', (url) => createClient({ url })],
    ['node-redis 6', (url) => createClient6({ url }) as never],
    ['a URL', (url) => url],
  ])('%s', async (_name, make) => {
    const [first] = cluster.nodes as readonly [RedisServer];
    const store = new RedisLockStore(make(first.url));
    const refusal = await refusalOf(() => store.open({ prefix: 'lock', warn: () => undefined }));
    expect(refusal).toEqual(CURE);
    expect(refusal).toMatchObject({ name: 'LockConfigurationError', ofStore: true });
    await store.close();
  });

  test('a quorum', async () => {
    const store = new QuorumLockStore((await cluster.masters()).map(({ url }) => url));
    const refusal = await refusalOf(() => store.open({ prefix: 'lock', warn: () => undefined }));
    expect(refusal).toEqual(saying(/node of a Redis Cluster\. .* A quorum takes servers outside of a Cluster\.$/));
    await store.close();
  });

  test('a call on a key whose slot another node has, where the start was not tried', async () => {
    const [first] = await cluster.masters();
    const store = new RedisLockStore((first as RedisServer).url);
    await store.open({ prefix: 'lock', warn: () => undefined, readOnly: true });
    const keys = Array.from({ length: 20 }, (_, at) => `key ${at}`);
    const refusals = await Promise.all(keys.map((key) => store.inspect(key).catch((error: unknown) => error)));
    expect(refusals.find((refusal) => refusal !== null)).toEqual(CURE);
    await store.close();
  });
});

describe('a client of another package is refused, by name, with what to pass instead', () => {
  const PASS =
    'Pass a client of ioredis or iovalkey \\(Redis or Cluster\\), one of createClient\\(\\) or createCluster\\(\\) of node-redis, a URL';

  const SENTINEL = 'a sentinel client of node-redis \\(the package redis\\), which may send a command twice';
  const BEHIND_SENTINEL = { name: 'locks', sentinelRootNodes: [{ host, port: 1 }] };

  test.each<[string, () => unknown, string]>([
    ['a pool', () => createClientPool(), 'a pool of node-redis \\(the package redis\\)'],
    ['a sentinel client of version 5', () => createSentinel(BEHIND_SENTINEL), SENTINEL],
    ['a sentinel client of version 6', () => createSentinel6(BEHIND_SENTINEL), SENTINEL],
  ])('%s of node-redis', (_what, make, what) => {
    const client = make() as never;
    expect(() => new RedisLockStore(client)).toThrow(new RegExp(`^RedisLockStore was given ${what}\\. ${PASS}`));
    expect(() => new QuorumLockStore([client, 'redis://b', 'redis://c'])).toThrow(
      new RegExp(`^QuorumLockStore was given ${what}\\. ${PASS}`),
    );
  });

  test.each<[string, () => unknown, string]>([
    ['legacy() of version 5', () => createClient().legacy(), 'legacy\\(\\) of a client'],
    ['legacy() of version 6', () => createClient6().legacy(), 'legacy\\(\\) of a client'],
    ['multi() of version 5', () => createClient().multi(), 'multi\\(\\) or pipeline\\(\\) of a client'],
    ['multi() of version 6', () => createClient6().multi(), 'multi\\(\\) or pipeline\\(\\) of a client'],
    [
      'multi() of a cluster',
      () => createCluster({ rootNodes: [{ url: 'redis://a' }] }).multi(),
      'multi\\(\\) or pipeline\\(\\) of a client',
    ],
    ['multi() of legacy()', () => createClient().legacy().multi(), 'multi\\(\\) or pipeline\\(\\) of a client'],
    ['multi() of ioredis', () => new Redis({ lazyConnect: true }).multi(), 'multi\\(\\) or pipeline\\(\\) of a client'],
    ['pipeline() of iovalkey', () => new Valkey({ lazyConnect: true }).pipeline(), 'multi\\(\\) or pipeline\\(\\) of a client'],
  ])('%s, which is no client', (_what, make, what) => {
    const given = make() as never;
    const message = new RegExp(`LockStore was given the answer of ${what}\\. Pass the client itself\\.$`);
    expect(() => new RedisLockStore(given)).toThrow(message);
    expect(() => new QuorumLockStore([given, 'redis://b', 'redis://c'])).toThrow(message);
  });

  test('a client that is being connected, as a promise', async () => {
    const client = createClient({ url: server.url });
    const connecting = client.connect();
    expect(() => new RedisLockStore(connecting as never)).toThrow(/was given a promise\. Pass what it resolves with/);
    await connecting;
    client.destroy();
  });

  test('a quorum takes no cluster', () => {
    const cluster6 = createCluster6({ rootNodes: [{ url: 'redis://a' }] }) as never;
    expect(() => new QuorumLockStore([cluster6, 'redis://b', 'redis://c'])).toThrow(/was given a Cluster client/);
  });

  test('a client of Valkey GLIDE', async () => {
    const client = await GlideClient.createClient({ addresses: [{ host, port: server.port }] });
    try {
      expect(() => new RedisLockStore(client as never)).toThrow(
        new RegExp(`^RedisLockStore was given a client of Valkey GLIDE \\(@valkey/valkey-glide\\)\\. ${PASS}`),
      );
    } finally {
      client.close();
    }
  });
});

test('a client of Valkey GLIDE fails a batch for one error in it, and connects anew without a word', async () => {
  const told: unknown[] = [];
  const client = await GlideClient.createClient({
    addresses: [{ host, port: server.port }],
    requestTimeout: 5_000,
    addressResolver: (name, port) => {
      told.push(name);
      return [name, port];
    },
  });
  try {
    // The other replies of the batch are gone: whether its locks were granted is not known.
    await expect(client.customCommand(['EVAL', "return {'granted', redis.error_reply('OTHER refused')}", '0'])).rejects.toThrow(/refused/);

    const idOf = async (): Promise<unknown> => client.customCommand(['CLIENT', 'ID']);
    const before = await idOf();
    await server.client.call('client', 'kill', 'id', Number(before));
    await until('it has another connection', async () => (await idOf().catch(() => before)) !== before);
    expect(told).toEqual([host]);
  } finally {
    client.close();
  }
});
