import 'reflect-metadata';
import { Redis } from 'ioredis';
import { setTimeout as sleep } from 'node:timers/promises';
import { LockConfigurationError } from '../../lib/core/words/errors';
import type { LockService } from '../../lib/nest/lock.service';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { RedisCommands } from '../../lib/redis/scripts/redis-commands';
import { RedisKeys } from '../../lib/redis/scripts/redis-keys';
import { serverWarnings } from '../../lib/redis/server-check';
import { slotTag } from '../../lib/redis/scripts/slot-tags';
import { startHolder } from '../support/holder';
import { callsOfEveryKind } from '../support/calls-of-every-kind';
import { makeLocks } from '../support/make-locks';
import { noWarning } from '../support/no-warning';
import { RedisServer } from '../support/redis-server';
import { sourceOf } from '../support/redis-source';
import { TcpProxy } from '../support/tcp-proxy';
import { saying } from '../support/saying';
import { until } from '../support/until';
import { newHold } from '../support/new-hold';
import { goOn, stopProcess } from '../support/stopping';

let server: RedisServer;
let store: RedisLockStore;
let locks: LockService;

beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(() => server.stop());

beforeEach(async () => {
  await server.client.flushall();
  store = new RedisLockStore(sourceOf(server.url));
  await store.open({ prefix: 'lock', warn: (message) => noWarning(message) });
  locks = makeLocks(store);
});
afterEach(() => store.close());

async function storedKeys(): Promise<string[]> {
  return (await server.client.keys('*')).filter((name) => !name.includes('start-up check')).toSorted();
}

describe('what is stored', () => {
  test('a lock is a hash with an expiry, its fence is a counter, and nothing else stays behind', async () => {
    await locks.withLock('balance:42', { ttl: 7_000 }, async (lock) => {
      expect(await storedKeys()).toEqual(['lock:fence:{0}', 'lock:lock:{balance:42}']);
      const stored = await server.client.hgetall('lock:lock:{balance:42}');
      expect(Object.keys(stored).toSorted()).toEqual(['by', 'fence', expect.stringMatching(/^hold:/), 'owner', 'since', 'ttl']);
      expect(stored).toMatchObject({ fence: String(lock.fence), ttl: '7000' });
      expect(await server.client.pttl('lock:lock:{balance:42}')).toBeGreaterThan(5_000);
    });
    expect(await storedKeys()).toEqual(['lock:fence:{0}']);
  });

  test('a release leaves a done mark for ten seconds where a command of its hold was not answered', async () => {
    const hold = newHold('balance:42', { unanswered: true });
    await store.acquire(hold);
    await store.release(hold);
    expect(await storedKeys()).toEqual([`lock:done:${hold.id}:{balance:42}`, 'lock:fence:{0}']);
    const ttl = await server.client.pttl(`lock:done:${hold.id}:{balance:42}`);
    expect(ttl).toBeGreaterThan(5_000);
    expect(ttl).toBeLessThanOrEqual(10_000);
  });

  test('ten thousand calls of every kind leave the counter of fences, and nothing else', async () => {
    const otherStore = new RedisLockStore(sourceOf(server.url));
    await otherStore.open({ prefix: 'lock', warn: (message) => noWarning(message) });
    const other = makeLocks(otherStore);
    await callsOfEveryKind(locks, other, 1_250);
    await otherStore.close();
    const left = await storedKeys();
    const marks = left.filter((name) => name.startsWith('lock:done:'));
    // Where the machine stood still, commands on their way had no answer.
    expect(marks.length).toBeLessThan(500);
    expect(left.filter((name) => !marks.includes(name))).toEqual(['lock:fence:{0}']);
  });

  test('braces, percent signs and control characters of a key are escaped between the braces', async () => {
    await locks.withLock('a}{%\n:é', async () => {
      expect(await storedKeys()).toContain('lock:lock:{a%7D%7B%25%0A:é}');
    });
  });

  test('a prefix starts every name, and one with braces is refused', async () => {
    const other = new RedisLockStore(sourceOf(server.url));
    await other.open({ prefix: 'shop:locks', warn: () => undefined });
    await makeLocks(other).withLock('k', async () => expect(await storedKeys()).toContain('shop:locks:lock:{k}'));
    await other.close();
    for (const prefix of ['{shop}', '', 'a b', 'a%b']) {
      await expect(new RedisLockStore(sourceOf(server.url)).open({ prefix, warn: () => undefined })).rejects.toThrow(
        /prefix is .*without braces/,
      );
    }
  });

  test('a lease whose expiry somebody took away or lengthened ends with its recorded ttl, also where its holder crashed', async () => {
    for (const change of ['persist', 'lengthen']) {
      const hold = newHold('k', { owner: change, id: change, ttlMs: 1_000, by: 'crashed' });
      expect((await store.acquire(hold)).fence).toBeGreaterThan(0);
      await (change === 'persist' ? server.client.persist('lock:lock:{k}') : server.client.pexpire('lock:lock:{k}', 3_600_000));
      await locks.withLock('k', { wait: 10_000 }, () => undefined);
    }
  });

  test('a forced release that is sent twice answers the same, and leaves the next owner alone', async () => {
    const lock = await locks.acquire('k', { renew: false });
    const { script, parameters } = new RedisCommands(new RedisKeys('lock', false), '').forceRelease('k', lock.fence);
    expect(await server.client.call('EVAL', script.source, ...parameters)).toBe(1);
    const next = await makeLocks(store).acquire('k');
    expect(await server.client.call('EVAL', script.source, ...parameters)).toBe(1);
    expect((await locks.operations.inspect('k'))?.fence).toBe(next.fence);
    await next.release();
  });

  test('a grant reserves its fences, also where the counter is ahead of the clock', async () => {
    await server.client.set('lock:fence:{0}', '8000000000000000');
    const fences: number[] = [];
    for (const [at, count] of [16, 1, 3, 1].entries()) {
      const granted = newHold(`k${at}`, { fences: count });
      fences.push((await store.acquire(granted)).fence as number);
    }
    expect(fences.map((fence) => fence - 8e15)).toEqual([1, 17, 18, 21]);
    // The next caller of an exchange reserves its own.
    const held = newHold('exchanged');
    await store.acquire(held);
    const { reply } = await store.exchange(held, newHold('exchanged', { fences: 5 }), { name: 'place' }, true);
    expect([(await reply).fence, (await store.acquire(newHold('last'))).fence]).toEqual([8e15 + 23, 8e15 + 28]);
  });

  test('the tag of a fence counter is in the slot of the lock, on every slot of a cluster', () => {
    const tags = new Set(Array.from({ length: 30_000 }, (_, index) => slotTag(`key ${index}`)));
    expect(tags.size).toBeGreaterThan(13_000);
    // Slots as CLUSTER KEYSLOT says: foo is in 12182, bar in 5061.
    expect(slotTag('foo')).toBe(slotTag(slotTag('foo')));
    expect(slotTag('foo')).not.toBe(slotTag('bar'));
  });
});

describe('commands', () => {
  test('a nested call sends none', async () => {
    const lock = await locks.acquire('k', { ttl: '1m' });
    await lock.run(async () => {
      const before = await server.commandCounts();
      for (let round = 0; round < 100; round++) {
        await locks.withLock('k', () => undefined);
      }
      expect((await server.commandCounts()).get('evalsha')).toBe(before.get('evalsha'));
    });
    await lock.release();
  });

  test('an acquire and its release are one each', async () => {
    await locks.withLock('warm', () => undefined);
    const before = await server.commandCounts();
    for (let round = 0; round < 100; round++) {
      await locks.withLock(`k${round}`, () => undefined);
    }
    const after = await server.commandCounts();
    expect((after.get('evalsha') ?? 0) - (before.get('evalsha') ?? 0)).toBe(200);
    expect(after.get('eval')).toBe(before.get('eval'));
  });
});

describe('other processes', () => {
  test('a crashed process frees its lock after its ttl and no sooner', async () => {
    const holder = await startHolder(server.url, 'k', 3_000);
    holder.child.kill('SIGKILL');
    const killedAt = performance.now();
    const left = await server.client.pttl('lock:lock:{k}');
    expect(left).toBeGreaterThan(500);
    const fence = await locks.withLock('k', { wait: 15_000 }, (lock) => lock.fence);
    const waited = performance.now() - killedAt;
    expect(waited).toBeGreaterThanOrEqual(left - 50);
    expect(waited).toBeLessThan(left + 2_500);
    expect(fence).toBeGreaterThan(holder.fence);
  });

  test('a process paused past its lease knows at once on resume that it lost the lock (SIGSTOP)', async () => {
    const holder = await startHolder(server.url, 'k', 1_000);
    stopProcess(holder.child.pid as number);
    const fence = await locks.withLock('k', { wait: 10_000 }, (lock) => lock.fence);
    expect(fence).toBeGreaterThan(holder.fence);
    const left = holder.leave().catch(() => false);
    goOn(holder.child.pid as number);
    expect(await left).toBe(false);
  });
});

describe('connections', () => {
  test("the user's client is duplicated, left as it is and never closed", async () => {
    const client = new Redis(server.port);
    const options = { ...client.options };
    const own = new RedisLockStore(client);
    await own.open({ prefix: 'lock', warn: () => undefined });
    await makeLocks(own).withLock('k', () => undefined);
    await own.close();
    expect(client.status).toBe('ready');
    expect(client.options).toEqual(options);
    expect(await client.ping()).toBe('PONG');
    client.disconnect();
  });

  test("a client's keyPrefix applies to keys, and notifications of forced releases still arrive", async () => {
    const client = new Redis(server.port, { keyPrefix: 'app:' });
    const own = new RedisLockStore(client);
    await own.open({ prefix: 'lock', warn: () => undefined });
    const service = makeLocks(own);
    const call = service.withLock('k', { ttl: 60_000 }, async (lock) => {
      expect(await storedKeys()).toContain('app:lock:lock:{k}');
      await service.operations.forceRelease('k', { fence: lock.fence });
      await until('the forced release', () => lock.signal.aborted);
      expect(lock.isHeld()).toBe(false);
    });
    await expect(call).rejects.toMatchObject({ reason: 'forced' });
    await own.close();
    client.disconnect();
  });

  const NO_SOURCES = [undefined, null, 42, 'localhost:6379', new Map(), () => undefined];
  test.each(NO_SOURCES.map((source) => [source]))('%p is refused as a source', (source) => {
    expect(() => new RedisLockStore(source as never)).toThrow(LockConfigurationError);
    expect(() => new RedisLockStore(source as never)).toThrow(
      /Pass a client of ioredis or iovalkey \(Redis or Cluster\), one of createClient\(\) or createCluster\(\) of node-redis, a URL/,
    );
  });

  test.each<[source: unknown, message: RegExp]>([
    [{ url: 'redis://:secret@a' }, /options with 'url', .* Pass the URL itself, a text, or createClient\(\{ url \}\) of node-redis\.$/],
    [{ socket: { host: 'a' } }, /options with 'socket', which ioredis does not know\. Pass .* createClient\(\) or createCluster\(\)/],
    [{ rootNodes: [] }, /options with 'rootNodes', which ioredis does not know\. Pass .* createClient\(\) or createCluster\(\)/],
    [{ host: 'a', database: 1 }, /options with 'database', which ioredis does not know\. Pass .* createClient\(\)/],
    [{ port: 'x' }, /options whose port is 'x'\. Pass a whole number\.$/],
    [{ port: Number(undefined) }, /options whose port is NaN\. Pass a whole number/],
    [{ host: 'a', port: 'tcp://10.0.0.1:6379' }, /options whose port is 'tcp:/],
    [{ db: -1 }, /options whose db is -1\. Pass a whole number/],
    [['redis://a', 'redis://b', 'redis://c'], /was given a list, and takes one server\. Pass independent servers to QuorumLockStore, and/],
    ['unix:///run/redis.sock', /the path of a Unix socket\. Pass \{ path: '\/run\/redis\.sock' \}\.$/],
    ['redis+unix:///run/redis.sock', /the path of a Unix socket/],
    ['/run/redis.sock', /the path of a Unix socket/],
  ])('%j is refused with what to pass in its place', (source, message) => {
    const make = (): unknown => new RedisLockStore(source as never);
    expect(make).toThrow(LockConfigurationError);
    expect(make).toThrow(message);
    expect(make).not.toThrow('secret');
  });

  test.each([[{}], [{ port: '6379', db: '1' }], [{ host: undefined, port: undefined, db: null }], [{ path: '/run/redis.sock' }]])(
    '%j is taken as options of ioredis',
    (options) => {
      expect(() => new RedisLockStore(options as never)).not.toThrow();
    },
  );

  test('options that ioredis itself refuses fail the start, with what it says', async () => {
    const warnings: unknown[] = [];
    const own = new RedisLockStore({ sentinels: [{ host: '127.0.0.1', port: 1 }] });
    const failure: unknown = await own.open({ prefix: 'lock', warn: (message) => warnings.push(message) }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(LockConfigurationError);
    expect(failure).toEqual(saying(/refused the options .*Requires the name of master.*Correct them/));
    expect(warnings.filter((warning) => typeof warning !== 'string')).toEqual([]);
  });

  test('a store that was closed with one application works in the next', async () => {
    const own = new RedisLockStore(sourceOf(server.url));
    for (let round = 0; round < 2; round++) {
      await own.open({ prefix: 'lock', warn: () => undefined });
      const service = makeLocks(own);
      expect(await service.withLock('k', () => 'ran')).toBe('ran');
      if (round === 1) {
        server.pause();
        await expect(service.acquire('k', { wait: 200 })).rejects.toMatchObject({ code: 'LOCK_STORE' });
        server.resume();
      }
      await service.shutdown();
    }
  });

  test('a closed store says so, and connects nowhere', async () => {
    const own = new RedisLockStore(sourceOf(server.url));
    await own.close();
    const connections = async (): Promise<number> => ((await server.client.client('LIST')) as string).split('\n').length;
    const before = await connections();
    await expect(own.inspect('k')).rejects.toThrow(/was closed/);
    await sleep(100);
    expect(await connections()).toBeLessThanOrEqual(before);
  });

  test('a store that is closed while it subscribes does not say that this was refused', async () => {
    const proxy = await TcpProxy.start(server.port);
    proxy.latencyMs = 300;
    const early = new RedisLockStore(sourceOf(proxy.url));
    const warnings: string[] = [];
    const before = (await server.client.pubsub('CHANNELS')) as string[];
    const opening = early.open({ prefix: 'early', warn: (message) => warnings.push(message) });
    await until(
      'a subscription whose reply is late',
      async () => ((await server.client.pubsub('CHANNELS')) as string[]).length > before.length,
    );
    await early.close();
    await opening.catch(() => undefined);
    await proxy.stop();
    // ioredis ends the socket first, and only then what it had sent.
    await sleep(1_000);
    expect(warnings.filter((warning) => warning.includes('refused'))).toEqual([]);
  });

  test('a server that evicts keys is warned of, and one that is too old is refused', () => {
    expect(serverWarnings('redis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\n')).toEqual([]);
    expect(serverWarnings('redis_version:7.0.15\r\nmaxmemory_policy:allkeys-lru\r\n')[0]).toMatch(/evicts keys.*noeviction/);
    expect(() => serverWarnings('redis_version:5.0.7\r\n')).toThrow(/Redis 5\.0\.7\. Use Redis 6/);
  });
});
