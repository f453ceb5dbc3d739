import 'reflect-metadata';
import { jest } from '@jest/globals';
import { Cluster, Redis } from 'ioredis';
import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect, isDeepStrictEqual, promisify } from 'node:util';
import { LockConfigurationError, type LockError } from '../../lib/core/words/errors';
import { QuorumServer } from '../../lib/quorum/members/quorum-server';
import { QuorumLockStore } from '../../lib/quorum/quorum-lock-store';
import type { QuorumLockStoreOptions } from '../../lib/quorum/quorum-lock-store.options';
import type { RedisSource } from '../../lib/redis/connection/redis-source';
import { makeLocks } from '../support/make-locks';
import { acquired, newHold, QuorumStores } from '../support/quorum-stores';
import { RedisQuorum } from '../support/redis-quorum';
import { freePort, RedisServer } from '../support/redis-server';
import { saying } from '../support/saying';
import { TcpProxy } from '../support/tcp-proxy';
import { until } from '../support/until';

const URLS = [1, 2, 3].map((port) => `redis://localhost:${port}`);

describe('a list, or options, that make no quorum', () => {
  const cluster = new Cluster([{ port: 1 }], { lazyConnect: true });
  const sentinel = new Redis({ sentinels: [{ port: 1 }], name: 'main', lazyConnect: true });
  afterAll(() => [cluster, sentinel].forEach((client) => client.disconnect()));

  test.each<[string, unknown, unknown, RegExp]>([
    ['no list', 'redis://localhost', undefined, /takes a list of servers\. Pass \[redis1, redis2, redis3\].*RedisLockStore is for one\.$/],
    [
      'one server',
      URLS.slice(0, 1),
      undefined,
      /was given one server\. Pass three or more, an odd number: .* RedisLockStore is for one\.$/,
    ],
    ['an even number', [...URLS, 'redis://localhost:4'], undefined, /was given 4 servers/],
    ['one server twice', [URLS[0], URLS[1], URLS[0]], undefined, /the same server twice/],
    [
      'a number in place of a server',
      [URLS[0], URLS[1], 42],
      undefined,
      /QuorumLockStore was given 42\. Pass a client of ioredis or iovalkey/,
    ],
    ['a cluster', [URLS[0], URLS[1], cluster], undefined, /was given a Cluster client\. Pass independent servers/],
    ['a Sentinel client', [URLS[0], URLS[1], sentinel], undefined, /was given a server behind Sentinel/],
    ['Sentinel options', [URLS[0], URLS[1], { sentinels: [] }], undefined, /was given a server behind Sentinel/],
    ['minReplicas', URLS, { minReplicas: 1 }, /'minReplicas' is no option here, but one of RedisLockStore\. The options are: longestLease/],
    ['an option that it does not have', URLS, { longestlease: 1 }, /there is no option 'longestlease'\. Did you mean 'longestLease'\?/],
    ['no object as options', URLS, null, /the options are null/],
    ['a lease that is no duration', URLS, { longestLease: 'soon' }, /longestLease is 'soon', which is not a duration/],
  ])('%s is refused with what to do', (_, sources, options, message) => {
    const make = (): unknown => new QuorumLockStore(sources as RedisSource[], options as QuorumLockStoreOptions);
    expect(make).toThrow(LockConfigurationError);
    expect(make).toThrow(message);
  });
});

describe('a quorum of five servers', () => {
  let stores: QuorumStores;
  let quorum: RedisQuorum;
  beforeEach(async () => {
    quorum = await RedisQuorum.start();
    stores = new QuorumStores(quorum, { longestLease: '20s' });
  });
  afterEach(() => stores.stop());

  test('takes clients, which it neither closes nor changes, and options', async () => {
    const client = new Redis(quorum.urls[0] as string);
    const own = new QuorumLockStore([client, ...quorum.urls.slice(1, 4), { port: quorum.at(4).port }]);
    await own.open({ prefix: 'lock', warn: (message) => stores.warnings.push(message) });
    expect(await makeLocks(own).withLock('k', () => 'ran')).toBe('ran');
    await own.close();
    expect(await client.ping()).toBe('PONG');
    expect(stores.warnings).toEqual([]);
    client.disconnect();
  });

  test('refuses calls that would need a longer lease than the longest, nested ones and minHold included', async () => {
    const locks = makeLocks(await stores.open(), { ttl: 15_000 });
    const message = (ms: number, option: string): string =>
      `Lock "k": a lease of ${ms} ms was asked for, and the longest of this store is 20000 ms. Lower ${option}, or raise longestLease`;
    await expect(locks.acquire('k', { ttl: 20_001 })).rejects.toThrow(saying(message(20_001, 'ttl')));
    await expect(locks.withLock('k', { minHold: '20s' }, () => 1)).rejects.toThrow(saying(message(20_205, 'minHold')));
    await locks.withLock('k', { minHold: 10 }, async (lock) => {
      await expect(locks.withLock('k', { ttl: '30s' }, () => 1)).rejects.toBeInstanceOf(LockConfigurationError);
      lock.assertHeld();
    });
  });

  test('finds out that two of its servers are the same', async () => {
    const twice = [...quorum.urls.slice(0, 4), `${quorum.urls[0]}/0`];
    await expect(stores.open(twice)).rejects.toThrow(
      /server 1 of 5 \(127\.0\.0\.1:\d+\) and server 5 of 5 \(127\.0\.0\.1:\d+\) are the same\. Pass independent servers/,
    );
  });

  const withPassword = (password: string, places: readonly number[]): string[] =>
    quorum.urls.map((url, place) => (places.includes(place) ? `redis://:${password}@127.0.0.1:${quorum.at(place).port}` : url));

  test('starts where two of them refuse a password or a right, warns of each by name, and goes on without them', async () => {
    await quorum.at(2).client.config('SET', 'requirepass', 'right');
    await quorum.at(1).client.acl('SETUSER', 'default', '-getset');
    const store = await stores.open(withPassword('wrong-password', [2]));
    expect(stores.warnings.toSorted()).toEqual([
      expect.stringMatching(
        /^server 2 of 5 \(127\.0\.0\.1:\d+\) of the quorum: .*Redis refused GETSET in the script 'vote'.*smallest ACL.* go on/i,
      ),
      expect.stringMatching(
        /^server 3 of 5.*of the quorum: Redis refused a command: WRONGPASS.*Correct the user name and password.* go on/,
      ),
    ]);
    expect(stores.warnings.join()).not.toContain('wrong-password');
    expect(await makeLocks(store).withLock('k', () => 'ran')).toBe('ran');
  });

  test('does not start where most of them refuse its password, and names one', async () => {
    await Promise.all([0, 2, 3].map((place) => quorum.at(place).client.config('SET', 'requirepass', 'right')));
    const error = (await stores.open(withPassword('wrong-password', [0, 2, 3])).catch((failure: unknown) => failure)) as Error;
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect((error as LockError).detail).toMatch(
      /^server 1 of 5.*of the quorum: Redis refused a command: WRONGPASS.*Correct the user name and password/,
    );
    expect(inspect(error, { depth: 10 })).not.toContain('wrong-password');
  });

  test('does not start where the user may not read the run of most servers', async () => {
    const skipped = jest.spyOn(console, 'warn').mockImplementation(() => undefined);
    await Promise.all([1, 3, 4].map((place) => quorum.at(place).client.acl('SETUSER', 'default', '-info')));
    await expect(stores.open(quorum.urls)).rejects.toThrow(saying(/^server 2 of 5.*: Redis refused INFO, .* Grant \+info/));
    skipped.mockRestore();
  });

  test('starts with a warning where a server is away, and goes on without it', async () => {
    await stores.open();
    await quorum.at(3).kill();
    const store = await stores.open(quorum.urls);
    expect((await acquired(store, 'k')).fence).toBeGreaterThan(0);
    expect(stores.warnings).toEqual([
      expect.stringMatching(
        /^server 4 of 5 of the quorum: Redis did not answer: connect ECONNREFUSED.* Locked calls go on with the others, as long as most .* are there\.$/,
      ),
    ]);
  });

  test('warns of a server that evicts', async () => {
    await quorum.at(0).client.config('SET', 'maxmemory-policy', 'allkeys-lru');
    await stores.open();
    expect(stores.warnings).toEqual([expect.stringMatching(/^server 1 of 5 .*: Redis evicts keys \(maxmemory-policy is allkeys-lru\)/)]);
  });

  test('calls a server on a Unix socket by its place', async () => {
    const path = `/tmp/quorum-${await freePort()}.sock`;
    const server = await RedisServer.start('--unixsocket', path, '--maxmemory-policy', 'allkeys-lru');
    const store = new QuorumLockStore([{ path }, ...quorum.urls.slice(1, 3)]);
    await store.open({ prefix: 'lock', warn: (message) => stores.warnings.push(message) });
    await store.close();
    await server.stop();
    expect(stores.warnings).toEqual([expect.stringMatching(/^server 1 of 3 of the quorum: Redis evicts keys/)]);
  });

  test('fails as unavailable where most of the servers are full, leaves nothing, and still renews and releases', async () => {
    const store = await stores.open();
    const held = await acquired(store, 'held');
    await Promise.all([0, 1, 2].map((place) => quorum.at(place).client.config('SET', 'maxmemory', '1')));
    await expect(store.acquire(newHold('k'))).rejects.toThrow(saying(/3 of 5 servers gave no answer that counts.*OOM/));
    expect(await store.renew([held])).toEqual([true]);
    expect(await store.release(held)).toBe(true);
    await sleep(300);
    await until('that nothing is left', async () => (await quorum.fences('k')).every((fence) => fence === null));
  });

  test('loses its locks where most of the servers stay full, and the error says why', async () => {
    const store = new QuorumLockStore(quorum.urls, { longestLease: 2_000 });
    await store.open({ prefix: 'lock', warn: () => undefined });
    const held = await acquired(store, 'held', 2_000, 500);
    await Promise.all([0, 1, 2].map((place) => quorum.at(place).client.config('SET', 'maxmemory', '1')));
    await until('the refusal', async () => {
      const said = await store.renew([held]).then(String, (error: LockError) => error.detail);
      return /3 of 5 servers gave no answer that counts.*OOM/.test(said);
    });
    await store.close();
  });

  test('loses only the locks whose keys an access list of most servers refuses', async () => {
    const store = await stores.open();
    const holds = await Promise.all(['a', 'b', 'c'].map((key) => acquired(store, key)));
    await Promise.all(
      [0, 2, 3].map((place) => quorum.at(place).client.acl('SETUSER', 'default', 'resetkeys', '~lock:*{[ac]}', '~lock:*s')),
    );
    expect(await store.renew(holds)).toEqual([true, undefined, true]);
  });

  test('notifies of a forced release once, although each server sends a message', async () => {
    const [store, other] = [await stores.open(), await stores.open()];
    const notified: unknown[] = [];
    store.onForced((...message) => notified.push(message));
    for (const key of ['a', 'b']) {
      const { fence } = await acquired(store, key);
      expect(await other.forceRelease(key, fence)).toBe(true);
    }
    await until('both', () => notified.length >= 2);
    await sleep(300);
    expect(notified).toHaveLength(2);
  });

  test('a server that was closed is not used when its connection becomes ready after that', async () => {
    const sessions: unknown[] = [];
    const client = new Redis(quorum.urls[0] as string, { lazyConnect: true });
    const source = Object.assign(client, {
      // The last reply of the handshake was on its way.
      duplicate: (options: object) => new Redis(quorum.at(0).port, '127.0.0.1', options).on('ready', () => server.close()),
    });
    const server: QuorumServer = new QuorumServer(
      { source },
      'server 1 of 5',
      (session) => sessions.push(session),
      () => true,
    );
    await expect(server.plain.info()).rejects.toThrow();
    expect([sessions, server.session]).toEqual([[], undefined]);
  });

  test('a store that is closed while it opens, and is opened again at once, is open', async () => {
    const store = new QuorumLockStore(quorum.proxied);
    const options = { prefix: 'lock', warn: (message: string) => void stores.warnings.push(message) };
    const first = store.open(options).catch((error: unknown) => error);
    await store.close();
    await store.open(options);
    expect(String(await first)).toMatch(/QuorumLockStore was closed\. Make a new one for new locks\./);
    expect((await acquired(store, 'k')).fence).toBeGreaterThan(0);
    expect(stores.warnings).toEqual([]);
    await store.close();
  });

  test('a store that is closed leaves no connection, refuses calls, and may be opened again', async () => {
    const clients = async (): Promise<number[]> =>
      Promise.all(quorum.servers.map(async ({ client }) => ((await client.client('LIST')) as string).trim().split('\n').length));
    const before = await clients();
    const store = new QuorumLockStore(quorum.urls);
    const opening = store.open({ prefix: 'lock', warn: () => undefined });
    await store.close();
    await expect(opening).rejects.toThrow('QuorumLockStore was closed. Make a new one for new locks.');
    // As long as it takes to connect.
    await sleep(400);
    await until('that they are closed', async () => isDeepStrictEqual(await clients(), before));
    await store.open({ prefix: 'lock', warn: () => undefined });
    await acquired(store, 'k');
    await store.close();
    await expect(store.acquire(newHold('k'))).rejects.toThrow(/QuorumLockStore was closed/);
    // As long as it takes to connect.
    await sleep(400);
    await until('that they are closed', async () => isDeepStrictEqual(await clients(), before));
  });
});

test('a quorum of which no server is there fails calls in bounded time, and names those that did not answer', async () => {
  const urls = await Promise.all(URLS.map(async () => `redis://127.0.0.1:${await freePort()}`));
  const store = new QuorumLockStore(urls);
  const startedAt = performance.now();
  await expect(store.acquire(newHold('k'))).rejects.toThrow(
    saying(/[23] of 3 servers gave no answer that counts.*server \d of 3: connect ECONNREFUSED.*; server \d of 3: connect ECONNREFUSED/),
  );
  expect(performance.now() - startedAt).toBeLessThan(10_000);
  await store.close();
});

test.each([
  ['node-redis', "import { createClient } from 'redis'; const make = (url) => createClient({ url }).on('error', () => undefined);"],
  ['ioredis', 'const make = (url) => url;'],
])('a start with %s keeps its process until it settles, also where all servers close each connection', async (_, make) => {
  const proxies = await Promise.all(URLS.map(() => TcpProxy.start(1)));
  proxies.forEach((proxy) => (proxy.mode = 'refuse'));
  const program = `
    import { QuorumLockStore } from 'nestjs-distributed-lock/quorum';
    ${make}
    const store = new QuorumLockStore(${JSON.stringify(proxies.map(({ url }) => url))}.map(make));
    const warnings = [];
    await store.open({ prefix: 'lock', warn: (message) => warnings.push(message) });
    console.log(warnings.length + ' warnings');
    await store.close();
  `;
  const args = ['--import', './test/support/typescript.mjs', '--input-type=module', '--eval', program];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  expect(stdout).toBe('3 warnings\n');
  await Promise.all(proxies.map((proxy) => proxy.stop()));
});
