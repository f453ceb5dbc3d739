import { afterAll, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { Cluster, Redis } from 'ioredis';
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis-5';
import { Cluster as ValkeyCluster, Redis as Valkey } from 'iovalkey';
import { createClient, createCluster } from 'redis';
import { createClient as createClient6, createCluster as createCluster6 } from 'redis-6';
import { setTimeout as sleep } from 'node:timers/promises';
import { LockConfigurationError } from '../../lib/core/words/errors';
import { readCredentials, type RedisCredentials } from '../../lib/redis/connection/credentials';
import type { RedisSource } from '../../lib/redis/connection/redis-source';
import { QuorumLockStore } from '../../lib/quorum/quorum-lock-store';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { makeLocks } from '../support/make-locks';
import { RedisCluster } from '../support/redis-cluster';
import { SentinelGroup } from '../support/redis-sentinel';
import { RedisServer } from '../support/redis-server';
import { until } from '../support/until';

const PATIENCE_MS = 120_000;
const username = 'locker';
const host = '127.0.0.1';

let server: RedisServer;
let members: readonly RedisServer[];
let cluster: RedisCluster;
let group: SentinelGroup;
/** The password that the servers take. */
let password = '';
let changes = 0;

beforeAll(async () => {
  [server, cluster, group, ...members] = await Promise.all([
    RedisServer.start(),
    RedisCluster.start(),
    SentinelGroup.start(),
    RedisServer.start(),
    RedisServer.start(),
    RedisServer.start(),
  ]);
});
beforeEach(() => rotate());
afterAll(async () => {
  await Promise.all([cluster, group, server, ...members].map((each) => each?.stop()));
});

/** Gives the user another password on each server, and ends the connections to some of them. */
async function rotate(cut: readonly RedisServer[] = everyServer()): Promise<void> {
  password = `password ${++changes}`;
  await Promise.all(
    everyServer().map(({ client }) => client.call('ACL', 'SETUSER', username, 'reset', 'on', `>${password}`, '~*', '&*', '+@all')),
  );
  await Promise.all(cut.map(({ client }) => client.call('CLIENT', 'KILL', 'USER', username)));
}

const everyServer = (): RedisServer[] => [server, ...members, ...cluster.nodes, ...group.servers];

const answer = async (): Promise<RedisCredentials> => ({ username, password });
const nodes = (): { host: string; port: number }[] => cluster.nodes.map(({ port }) => ({ host, port }));
const roots = (): { socket: { host: string; port: number } }[] => nodes().map((socket) => ({ socket }));
const login = (): { username: string; password: string } => ({ username, password });

/** Where the Sentinels say which server leads. Whoever asks them needs no password. */
const watched = () => ({ sentinels: group.sentinelPorts.map((port) => ({ host, port })), name: 'locks' });

/** A source, and how an application puts another password into it. */
interface Rotating {
  readonly source: RedisSource;
  change?(): void;
  end(): void;
}

/** A client of ioredis whose options an application changes. */
function changed(client: Redis | Redis5 | Valkey): Rotating {
  client.on('error', () => undefined);
  return { source: client, change: () => (client.options.password = password), end: () => client.disconnect() };
}

function changedCluster(client: Cluster | Cluster5 | ValkeyCluster): Rotating {
  client.on('error', () => undefined);
  const options = client.options.redisOptions as { password?: string };
  return { source: client, change: () => (options.password = password), end: () => client.disconnect() };
}

const CHANGED: readonly (readonly [string, () => Rotating])[] = [
  ['a client of ioredis 6', () => changed(new Redis(server.port, host, login()))],
  ['a client of ioredis 5', () => changed(new Redis5(server.port, host, login()))],
  ['a client of iovalkey', () => changed(new Valkey(server.port, host, login()))],
  ['Sentinels of ioredis 6', () => changed(new Redis({ ...watched(), ...login() }))],
  ['Sentinels of ioredis 5', () => changed(new Redis5({ ...watched(), ...login() }))],
  ['a Cluster of ioredis 6', () => changedCluster(new Cluster(nodes(), { redisOptions: login() }))],
  ['a Cluster of ioredis 5', () => changedCluster(new Cluster5(nodes(), { redisOptions: login() }))],
  ['a Cluster of iovalkey', () => changedCluster(new ValkeyCluster(nodes(), { redisOptions: login() }))],
  [
    'options with a getter',
    () => {
      const options = { host, port: server.port, username };
      Object.defineProperty(options, 'password', { get: () => password, enumerable: true });
      return { source: options, end: () => undefined };
    },
  ],
];

/** Clients that know no user and password, or an old one. */
const STALE = { username, password: 'of long ago' };
const ASKED: readonly (readonly [string, () => Rotating])[] = [
  ['a URL', () => ({ source: `redis://${host}:${server.port}`, end: () => undefined })],
  ['options', () => ({ source: { host, port: server.port, ...STALE }, end: () => undefined })],
  ['a client of ioredis 6', () => changed(new Redis(server.port, host, { lazyConnect: true }))],
  ['a client of ioredis 5', () => changed(new Redis5(server.port, host, { lazyConnect: true, ...STALE }))],
  ['a client of iovalkey', () => changed(new Valkey(server.port, host, { lazyConnect: true, ...STALE }))],
  ['a client of node-redis 5', () => ({ source: createClient({ url: `redis://${host}:${server.port}` }), end: () => undefined })],
  ['a client of node-redis 6', () => ({ source: createClient6({ socket: { host, port: server.port }, ...STALE }), end: () => undefined })],
  ['Sentinels, as options', () => ({ source: { ...watched(), ...STALE }, end: () => undefined })],
  ['Sentinels of ioredis 5', () => changed(new Redis5({ ...watched(), lazyConnect: true, ...STALE }))],
  ['a Cluster of ioredis 6', () => changedCluster(new Cluster(nodes(), { lazyConnect: true, redisOptions: { ...STALE } }))],
  ['a Cluster of ioredis 5', () => changedCluster(new Cluster5(nodes(), { lazyConnect: true, redisOptions: { ...STALE } }))],
  ['a Cluster of iovalkey', () => changedCluster(new ValkeyCluster(nodes(), { lazyConnect: true, redisOptions: { ...STALE } }))],
  ['a Cluster of node-redis 5', () => ({ source: createCluster({ rootNodes: roots() }), end: () => undefined })],
  ['a Cluster of node-redis 6', () => ({ source: createCluster6({ rootNodes: roots(), defaults: STALE }), end: () => undefined })],
];

/** Plays three rotations: locks on keys of each node, and turns, come back after each. */
async function play(store: RedisLockStore | QuorumLockStore, change: () => void = () => undefined): Promise<void> {
  const warnings: string[] = [];
  await store.open({ prefix: 'lock', warn: (message) => warnings.push(message) });
  const locks = makeLocks(store);
  const keys = Array.from({ length: 8 }, (_, at) => `key ${at}`);
  const lockAll = (): Promise<unknown> => Promise.all(keys.map((key) => locks.withLock(key, { wait: 2_000 }, () => undefined)));
  await lockAll();
  const held = await locks.acquire('held', { ttl: 60_000 });
  for (let round = 0; round < 3; round++) {
    await rotate();
    change();
    await until('that locks are granted', () =>
      lockAll().then(
        () => true,
        () => false,
      ),
    );
    await until('that turns are heard of', async () => (await store.health()).hearsTurns !== false);
  }
  expect(held.isHeld()).toBe(true);
  expect(await store.inspect('held')).toMatchObject({ fence: held.fence });
  await held.release();
  await store.close();
  expect(warnings).toEqual([]);
}

describe('user and password are read anew for each connection', () => {
  test.each(CHANGED)(
    'from %s',
    async (_name, make) => {
      const { source, change, end } = make();
      await play(new RedisLockStore(source), change).finally(end);
    },
    PATIENCE_MS,
  );

  test.each(ASKED)(
    'from the function of a store on %s',
    async (_name, make) => {
      const { source, end } = make();
      await play(new RedisLockStore(source, { credentials: answer })).finally(end);
    },
    PATIENCE_MS,
  );

  test.each(ASKED.filter(([name]) => /^a Cluster/.test(name)))(
    'from the function of a store on %s, of which one node alone ends its connections',
    async (_name, make) => {
      const { source, end } = make();
      const store = new RedisLockStore(source, { credentials: answer });
      await store.open({ prefix: 'lock', warn: () => undefined });
      const locks = makeLocks(store);
      const lockAll = (): Promise<unknown> =>
        Promise.all(Array.from({ length: 12 }, (_, at) => locks.withLock(`key ${at}`, { wait: 2_000 }, () => undefined)));
      await lockAll();
      for (const node of await cluster.masters()) {
        await rotate([node]);
        await until('that locks are granted', () =>
          lockAll().then(
            () => true,
            () => false,
          ),
        );
      }
      await store.close();
      end();
    },
    PATIENCE_MS,
  );

  test(
    'from the function of a quorum',
    async () => {
      const sources = members.map(({ port }) => `redis://${host}:${port}`);
      await play(new QuorumLockStore(sources, { credentials: answer }));
    },
    PATIENCE_MS,
  );
});

describe('a function of credentials', () => {
  const url = (): string => `redis://${host}:${server.port}`;
  const SOURCES: readonly (readonly [string, () => RedisSource])[] = [
    ['ioredis', url],
    ['node-redis', () => createClient({ url: url() })],
    ['a Cluster of ioredis', () => new Cluster(nodes(), { lazyConnect: true })],
    ['a Cluster of node-redis', () => createCluster({ rootNodes: roots() })],
  ];

  test.each(SOURCES)('that fails is named, and asked again until it answers, on %s', async (_name, make) => {
    let isAway = true;
    const credentials = (): RedisCredentials => {
      if (isAway) {
        throw new Error('the token service is away');
      }
      return { username, password };
    };
    const store = new RedisLockStore(make(), { credentials });
    const warnings: string[] = [];
    await store.open({ prefix: 'lock', warn: (message) => warnings.push(message) });
    expect(warnings.join(' ')).toMatch(/function 'credentials' of the store failed: the token service is away/);
    const locks = makeLocks(store);
    await expect(locks.withLock('k', { wait: 300 }, () => undefined)).rejects.toMatchObject({
      code: 'LOCK_STORE',
      detail: expect.stringContaining("the function 'credentials' of the store failed: the token service is away") as unknown,
    });
    isAway = false;
    expect(await locks.withLock('k', { wait: 20_000 }, () => 'served')).toBe('served');
    await store.close();
  });

  test.each([
    ['nothing', undefined],
    ['a text', 'secret'],
    ['a number as the password', { password: 1 }],
    ['a number as the user', { username: 1, password: 'secret' }],
  ])('that answers %s is told what to answer, and its answer stays a secret', async (_name, given) => {
    const store = new RedisLockStore(url(), { credentials: () => given as unknown as RedisCredentials });
    const warnings: string[] = [];
    await store.open({ prefix: 'lock', warn: (message) => warnings.push(message) });
    await store.close();
    expect(warnings.join(' ')).toContain('it has to answer { username, password }');
    expect(warnings.join(' ')).not.toContain('secret');
  });

  test('that never answers has failed after ten seconds', async () => {
    jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
    const reading = readCredentials(() => new Promise(() => undefined)).catch((error: Error) => error.message);
    await jest.advanceTimersByTimeAsync(10_000);
    jest.useRealTimers();
    expect(await reading).toMatch(/function 'credentials' of the store failed: it did not answer within 10000 ms/);
  });

  test('is not called any more once the store is closed', async () => {
    let calls = 0;
    const credentials = async (): Promise<RedisCredentials> => {
      calls++;
      return answer();
    };
    const store = new RedisLockStore(new Cluster(nodes(), { lazyConnect: true }), { credentials });
    await store.open({ prefix: 'lock', warn: () => undefined });
    await store.close();
    const before = calls;
    await sleep(1_000);
    expect(calls).toBe(before);
  });

  test('that answers after the store was closed makes no connection', async () => {
    let reply: (credentials: RedisCredentials) => void = () => undefined;
    const asked = new Promise<RedisCredentials>((resolve) => (reply = resolve));
    const store = new RedisLockStore(url(), { credentials: () => asked });
    const opening = store.open({ prefix: 'lock', warn: () => undefined }).catch(() => undefined);
    await sleep(300);
    await store.close();
    reply({ username, password });
    await opening;
    await sleep(500);
    expect(await server.client.call('CLIENT', 'LIST')).not.toContain(`user=${username}`);
  });

  test.each([
    ['RedisLockStore', () => new RedisLockStore(url(), { credentials: 'secret' as never })],
    [
      'QuorumLockStore',
      () =>
        new QuorumLockStore(
          [1, 2, 3].map((at) => `redis://${host}:${at}`),
          { credentials: {} as never },
        ),
    ],
  ])('has to be one, says %s', (name, make) => {
    expect(make).toThrow(LockConfigurationError);
    expect(make).toThrow(expect.objectContaining({ detail: expect.stringMatching(new RegExp(`^${name}: credentials is`)) as unknown }));
  });
});
