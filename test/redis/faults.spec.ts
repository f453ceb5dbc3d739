import 'reflect-metadata';
import { jest } from '@jest/globals';
import { Redis } from 'ioredis';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { LockConfigurationError, LockLostError, LockStoreError, type LockError } from '../../lib/core/errors';
import type { LockTrouble } from '../../lib/core/reporter';
import type { LockService } from '../../lib/nest/lock.service';
import { RedisLockStore } from '../../lib/stores/redis/redis-lock-store';
import { makeLocks } from '../support/make-locks';
import { freePort, RedisServer } from '../support/redis-server';
import { TcpProxy } from '../support/tcp-proxy';
import { saying } from '../support/saying';
import { until } from '../support/until';

let server: RedisServer;
let proxy: TcpProxy;
let store: RedisLockStore;
let locks: LockService;
let troubles: LockTrouble[];
let warnings: string[];

async function openStore(...source: ConstructorParameters<typeof RedisLockStore>): Promise<RedisLockStore> {
  const opened = new RedisLockStore(...source);
  await opened.open({ prefix: 'lock', warn: (message) => warnings.push(message) });
  return opened;
}

beforeEach(async () => {
  troubles = [];
  warnings = [];
  server = await RedisServer.start();
  proxy = await TcpProxy.start(server.port);
  store = await openStore(proxy.url);
  locks = makeLocks(store, { onTrouble: (trouble) => troubles.push(trouble) });
});
afterEach(async () => {
  await store.close();
  await proxy.stop();
  await server.stop();
});

const lockOf = (key: string): string => `lock:lock:{${key}}`;
/** How many connections the server has had. */
const connections = async (): Promise<number> => Number(/total_connections_received:(\d+)/.exec(await server.client.info('stats'))?.[1]);

test('a script that the server has forgotten is sent whole within the same time limit', async () => {
  await (await locks.acquire('k')).release();
  await server.client.script('FLUSH');
  proxy.latencyMs = 700;
  await expect(locks.acquire('k', { wait: 0 })).rejects.toThrow(saying(/no reply within (1000|9\d\d) ms/));
});

describe('a reply that is lost', () => {
  test("acquire's: the lock ends up held by us with the same fence", async () => {
    proxy.mode = 'killOnReply';
    const acquiring = locks.acquire('k', { ttl: 2_000 });
    await until('the grant', async () => (await server.client.hget(lockOf('k'), 'fence')) !== null);
    const fence = await server.client.hget(lockOf('k'), 'fence');
    // The proxy gets the reply after the grant can be seen.
    await sleep(100);
    proxy.mode = 'pass';
    const lock = await acquiring;
    expect(String(lock.fence)).toBe(fence);
    expect(await locks.inspect('k')).toMatchObject({ holds: 1 });
    await lock.release();
    expect(await locks.inspect('k')).toBeNull();
  });

  test("acquire's, with a caller who gives up: the lock is released again", async () => {
    proxy.mode = 'dropReplies';
    const refusal = expect(locks.acquire('k', { ttl: 60_000, wait: 0 })).rejects.toMatchObject({ code: 'LOCK_STORE', unknown: true });
    await until('the grant', async () => (await server.client.exists(lockOf('k'))) === 1);
    await refusal;
    proxy.mode = 'pass';
    await until('the release', async () => (await server.client.exists(lockOf('k'))) === 0);
  });

  test("release's: the result stands, and the release is sent again", async () => {
    const result = await locks.withLock('k', { ttl: 2_000 }, () => {
      proxy.mode = 'killOnReply';
      setTimeout(() => (proxy.mode = 'pass'), 200);
      return 'result';
    });
    expect(result).toBe('result');
    expect(troubles.map(({ type }) => type)).toEqual(['releaseFailed']);
    expect(await server.client.exists(lockOf('k'))).toBe(0);
    await sleep(600);
    expect(troubles).toHaveLength(1);
    expect(await locks.withLock('k', () => 'next')).toBe('next');
  });

  test("release's, whose command is lost too: the lock is free soon, and no later than its lease", async () => {
    await locks.withLock('k', { ttl: 2_000 }, () => {
      proxy.mode = 'blackhole';
      setTimeout(() => (proxy.mode = 'pass'), 600);
    });
    expect(await server.client.exists(lockOf('k'))).toBe(1);
    const startedAt = performance.now();
    await locks.withLock('k', { wait: 5_000 }, () => undefined);
    expect(performance.now() - startedAt).toBeLessThan(2_000);
  });

  test("release's, of a lock with a long ttl: it is sent again within seconds", async () => {
    await locks.withLock('k', { ttl: '10m' }, () => {
      proxy.mode = 'blackhole';
      setTimeout(() => (proxy.mode = 'pass'), 1_200);
    });
    expect(await server.client.exists(lockOf('k'))).toBe(1);
    await sleep(3_500);
    expect(await server.client.exists(lockOf('k'))).toBe(0);
  });

  test("renewal's: the next one follows, and nothing is lost", async () => {
    await locks.withLock('k', { ttl: 3_600 }, async (lock) => {
      proxy.mode = 'dropReplies';
      await sleep(1_800);
      proxy.mode = 'pass';
      await sleep(3_600);
      expect(lock.isHeld()).toBe(true);
    });
    expect(troubles.filter(({ type }) => type === 'lost')).toEqual([]);
  });
});

describe('a server that does not answer', () => {
  test('half-open connections are bounded by the command timeout, lost at the deadline, and made anew', async () => {
    const call = locks.withLock('k', { ttl: 600 }, async (lock) => {
      proxy.mode = 'blackhole';
      await sleep(700);
      expect(lock.isHeld()).toBe(false);
      expect(lock.signal.reason).toBeInstanceOf(LockLostError);
      proxy.mode = 'pass';
    });
    await expect(call).rejects.toMatchObject({ reason: 'expired' });
    expect(await locks.withLock('k', { wait: 3_000 }, () => 1)).toBe(1);
  });

  test('a grant that comes after its own deadline is none, and is released', async () => {
    proxy.latencyMs = 150;
    await expect(locks.acquire('k', { ttl: 100, wait: 300 })).rejects.toBeInstanceOf(LockStoreError);
    proxy.latencyMs = 0;
    await sleep(300);
    expect(await server.client.exists(lockOf('k'))).toBe(0);
  });

  test('a stopped server fails a call within its command timeout, and is used again when it goes on', async () => {
    server.pause();
    const startedAt = performance.now();
    await expect(locks.acquire('k', { wait: 0 })).rejects.toMatchObject({ code: 'LOCK_STORE', unknown: true });
    expect(performance.now() - startedAt).toBeLessThan(1_500);
    expect(troubles.map(({ type }) => type)).toEqual(['storeUnavailable']);
    server.resume();
    expect(await locks.withLock('k', { wait: 3_000 }, () => 1)).toBe(1);
  });

  test('a killed and restarted server has no locks: holders learn it, fences still rise', async () => {
    let before = 0;
    const call = locks.withLock('k', { ttl: 900 }, async (lock) => {
      before = lock.fence;
      await server.kill();
      await server.start();
      await sleep(900);
      expect(lock.isHeld()).toBe(false);
    });
    await expect(call).rejects.toBeInstanceOf(LockLostError);
    expect(await locks.withLock('k', { wait: 3_000 }, ({ fence }) => fence)).toBeGreaterThan(before);
  });

  test('a waiter outlasts a restart of the server', async () => {
    await server.kill();
    const waiting = locks.withLock('k', { wait: 5_000 }, () => 1);
    await sleep(300);
    await server.start();
    expect(await waiting).toBe(1);
  });
});

describe('a slow connection', () => {
  test('is not taken for a dead one because one caller has a short ttl', async () => {
    proxy.latencyMs = 90;
    let failed = 0;
    const endsAt = performance.now() + 1_500;
    const short = (async () => {
      while (performance.now() < endsAt) {
        await locks.acquire('short', { ttl: 200, wait: 0 }).then(
          (lock) => lock.release(),
          () => sleep(5),
        );
      }
    })();
    while (performance.now() < endsAt) {
      await locks.withLock('long', { ttl: 10_000, wait: 0 }, () => undefined).catch(() => failed++);
    }
    await short;
    expect(failed).toBe(0);
  });

  test('keeps the calls that have time left, though the server stands still for longer than one beside them may wait', async () => {
    for (let rounds = 0; rounds < 3;) {
      const before = await connections();
      const startedAt = performance.now();
      server.pause();
      const short = locks.acquire('short', { ttl: 200, wait: 0 }).catch((error: Error) => error);
      const calls = Array.from({ length: 5 }, (_, at) => locks.withLock(`k${at}`, { ttl: 10_000, wait: 0 }, () => at));
      const ended = Promise.allSettled(calls);
      await sleep(400);
      server.resume();
      const results = await ended;
      expect(await short).toBeInstanceOf(LockStoreError);
      // Where the machine was busy for longer than a call may wait, the round shows nothing.
      if (performance.now() - startedAt < 800) {
        expect(results.filter(({ status }) => status === 'rejected')).toEqual([]);
        expect(await connections()).toBe(before);
        rounds++;
      }
    }
  });

  test('is found to be half open within seconds, also after a reply that was late because the process stood still', async () => {
    const late = locks.acquire('late', { wait: 3_000 });
    await sleep(0);
    const endsAt = performance.now() + 1_800;
    while (performance.now() < endsAt) {
      // Stands still, as if it were stopped; the proxy does too.
    }
    await (await late).release();
    proxy.mode = 'blackhole';
    await locks.acquire('k', { ttl: 400, wait: 0 }).catch(() => undefined);
    proxy.mode = 'pass';
    expect(await locks.withLock('k', { wait: 3_500 }, () => 1)).toBe(1);
  });

  test('leaves nothing behind at shutdown: what was on its way is released', async () => {
    proxy.latencyMs = 100;
    const call = locks.acquire('k', { ttl: 20_000 }).catch((error: Error) => error);
    await sleep(30);
    await locks.shutdown();
    expect(await call).toMatchObject({ reason: 'shutdown' });
    expect(await server.client.exists(lockOf('k'))).toBe(0);
  });

  test('is not made anew where it was the event loop that was blocked', async () => {
    // Without the proxy, which would be blocked as well.
    const own = await openStore(server.url);
    const before = await connections();
    const acquiring = makeLocks(own, { onTrouble: (trouble) => troubles.push(trouble) }).acquire('k', { ttl: 1_000, wait: 0 });
    for (let turn = 0; turn < 50; turn++) {
      // Lets the command be sent, and no reply be read.
      await Promise.resolve();
    }
    const endsAt = performance.now() + 600;
    while (performance.now() < endsAt) {
      // Blocked past the command's limit; the reply lies unread.
    }
    await (await acquiring).release();
    expect(troubles).toEqual([]);
    expect(await connections()).toBe(before);
    await own.close();
  });
});

describe('closing', () => {
  const clients = async (): Promise<number> => ((await server.client.client('LIST')) as string).trim().split('\n').length;

  test('while the store opens leaves no connection behind', async () => {
    const before = await clients();
    const own = new RedisLockStore(server.url);
    const opening = own.open({ prefix: 'lock', warn: () => undefined });
    await own.close();
    await expect(opening).rejects.toThrow(/was closed/);
    // As long as it takes to connect.
    await sleep(400);
    await until('that its connections are closed', async () => (await clients()) === before);
  });

  test('ends calls that wait for the first connection', async () => {
    const own = new RedisLockStore(`redis://127.0.0.1:${await freePort()}`);
    const service = makeLocks(own);
    const calls = Promise.allSettled([service.acquire('a'), service.acquire('b')]);
    await sleep(80);
    await service.shutdown();
    expect((await calls).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  });
});

describe('locks that vanish', () => {
  test('a key deleted behind its back is lost within a renewal, aborts the signal and rejects the call', async () => {
    let toldAfter = Infinity;
    const call = locks.withLock('k', { ttl: 4_000 }, async (lock) => {
      const startedAt = performance.now();
      lock.signal.addEventListener('abort', () => (toldAfter = performance.now() - startedAt));
      await server.client.del(lockOf('k'));
      await until('the loss', () => lock.signal.aborted);
    });
    await expect(call).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
    await expect(call).rejects.toThrow(saying(/the store no longer has it\. It was deleted, flushed or evicted/));
    // By the first renewal, after 1,333 ms.
    expect(toldAfter).toBeLessThan(2_500);
    expect(troubles.map(({ type }) => type)).toEqual(['lost']);
  });

  test('a loss that no renewal has found before the body ends is found by the release', async () => {
    const call = locks.withLock('k', async () => {
      await server.client.del(lockOf('k'));
    });
    await expect(call).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
  });

  test('fences rise over a FLUSHALL', async () => {
    const before = await locks.withLock('k', ({ fence }) => fence);
    await server.client.flushall();
    expect(await locks.withLock('k', ({ fence }) => fence)).toBeGreaterThan(before);
  });

  test('fences rise where the counter is ahead of the clock', async () => {
    await server.client.set('lock:fence:{0}', '8000000000000000');
    expect(await locks.withLock('k', ({ fence }) => fence)).toBe(8_000_000_000_000_001);
  });
});

describe('a server that refuses', () => {
  test('out of memory: an acquire fails as unavailable and leaves nothing, renew and release still work', async () => {
    await locks.withLock('k', { ttl: 600 }, async (lock) => {
      await server.client.config('SET', 'maxmemory', '1');
      await expect(locks.acquire('other', { wait: 0 })).rejects.toMatchObject({ code: 'LOCK_STORE', unknown: false });
      expect(await server.client.exists(lockOf('other'))).toBe(0);
      await sleep(900);
      expect(lock.isHeld()).toBe(true);
    });
    expect(await server.client.exists(lockOf('k'))).toBe(0);
    await server.client.config('SET', 'maxmemory', '0');
    expect(troubles.filter(({ type }) => type !== 'storeUnavailable')).toEqual([]);
  });

  test('a replica is tried again within the wait, then the error names the cause', async () => {
    await server.client.replicaof('127.0.0.1', '1');
    await expect(locks.acquire('k', { wait: 0 })).rejects.toThrow(saying(/READONLY/));
    const waiting = locks.withLock('k', { wait: 3_000 }, () => 1);
    await sleep(200);
    await server.client.replicaof('NO', 'ONE');
    expect(await waiting).toBe(1);
  });

  test('a foreign key under the prefix is a clear error', async () => {
    await server.client.set(lockOf('k'), 'mine');
    await expect(locks.acquire('k')).rejects.toThrow(saying(/WRONGTYPE.*Choose another prefix/));
    await expect(locks.acquire('k')).rejects.toBeInstanceOf(LockConfigurationError);
  });

  test('a foreign key in the place of one lock does not take the others along', async () => {
    const held = await Promise.all(['a', 'b', 'c'].map((key) => locks.acquire(key, { ttl: 600 })));
    await server.client.set(lockOf('b'), 'mine');
    await sleep(700);
    expect(held.map((lock) => lock.isHeld())).toEqual([true, false, true]);
    await Promise.all(held.map((lock) => lock.release()));
  });

  test('a server that is away is not taken for a lock that is busy by those who queue behind', async () => {
    await server.kill();
    const calls = await Promise.allSettled(Array.from({ length: 3 }, () => locks.acquire('k', { wait: 400 })));
    expect(calls.map((call) => call.status === 'rejected' && (call.reason as LockStoreError).code)).toEqual([
      'LOCK_STORE',
      'LOCK_STORE',
      'LOCK_STORE',
    ]);
    const first = locks.acquire('k', { wait: 400 }).catch(() => undefined);
    await sleep(100);
    await expect(locks.tryAcquire('k')).rejects.toBeInstanceOf(LockStoreError);
    await first;
    await server.start();
  });

  test('an outage is reported once, and the next one again', async () => {
    for (const round of [1, 2]) {
      await server.kill();
      await locks.acquire('k', { wait: 0 }).catch(() => undefined);
      await locks.acquire('k', { wait: 0 }).catch(() => undefined);
      expect(troubles.filter(({ type }) => type === 'storeUnavailable')).toHaveLength(round);
      await server.start();
      await locks.withLock('k', { wait: 5_000 }, () => undefined);
      expect(troubles.filter(({ type }) => type === 'storeAnswered')).toHaveLength(round);
    }
  });

  test('a wrong password fails at start, naming what to correct and not the password', async () => {
    await server.client.config('SET', 'requirepass', 'right');
    const failure = openStore(`redis://:wrong-password@127.0.0.1:${server.port}`).catch((error: Error) => error);
    const error = (await failure) as Error;
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect((error as LockError).detail).toMatch(/WRONGPASS.*Correct the user name and password/);
    expect((error as LockError).detail).not.toContain('wrong-password');
    expect(inspect(error, { depth: 10 })).not.toContain('wrong-password');
    await expect(openStore(server.url)).rejects.toThrow(saying(/NOAUTH.*Correct the user name and password/));
  });

  test('a password that was wrong for a moment does not outlast it', async () => {
    const own = await openStore(`redis://default:secret@127.0.0.1:${server.port}`);
    const service = makeLocks(own);
    await service.withLock('k', () => 1);
    await server.client.config('SET', 'requirepass', 'other');
    await server.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await sleep(300);
    await server.client.config('SET', 'requirepass', 'secret');
    await sleep(1_500);
    expect(await service.withLock('k', () => 'again')).toBe('again');
    await own.close();
  });

  test('an error shows no owners, in none of its properties', async () => {
    const lock = await locks.acquire('k', { ttl: 3_000 });
    const owner = (await server.client.hget(lockOf('k'), 'owner')) as string;
    await server.client.acl('SETUSER', 'default', '-evalsha', '-eval');
    await until('a renewal that is refused', () => troubles.length > 0);
    const error = await locks.inspect('k').catch((failure: unknown) => failure);
    expect(troubles.map(({ type }) => type)).toEqual(['storeUnavailable']);
    await server.client.acl('SETUSER', 'default', '+evalsha', '+eval');
    expect(inspect([error, troubles], { depth: 10 })).not.toContain(owner);
    await lock.release();
  });

  test('a database that cannot be selected is refused, and the locks are not put into another one', async () => {
    await expect(openStore(`${server.url}/99`)).rejects.toThrow(
      saying(/refused to set the connection up: ERR DB index is out of range\. Correct the database/),
    );
    expect(await server.client.keys('lock:lock:*')).toEqual([]);
    const own = await openStore(`${server.url}/3`);
    await makeLocks(own).withLock('k', async () => {
      await server.client.select(3);
      expect(await server.client.exists(lockOf('k'))).toBe(1);
      await server.client.select(0);
    });
    await own.close();
  });

  test('an unreachable server at start is a warning, and calls fail clearly until it is there', async () => {
    const port = await freePort();
    const away = await openStore(`redis://127.0.0.1:${port}`);
    expect(warnings).toEqual([expect.stringMatching(/did not answer: connect ECONNREFUSED.*Locked calls fail until then/)]);
    const error = (await makeLocks(away)
      .acquire('k', { wait: 0 })
      .catch((failure: unknown) => failure)) as LockStoreError;
    expect(error).toMatchObject({ code: 'LOCK_STORE', key: 'k', status: 503 });
    expect(error.detail).toMatch(/^Lock "k": Redis did not answer: connect ECONNREFUSED .*Make sure that it runs and can be reached/);
    await away.close();
  });

  test('the policy of a server that evicts is warned of at start', async () => {
    await server.client.config('SET', 'maxmemory-policy', 'allkeys-lru');
    await (await openStore(server.url)).close();
    expect(warnings).toEqual([expect.stringMatching(/maxmemory-policy is allkeys-lru/)]);
  });
});

describe('access control', () => {
  const RIGHTS = [
    '+evalsha', '+eval', '+get', '+getset', '+set', '+del', '+exists', '+hget', '+hset', '+hdel', '+hlen', '+hmget', '+hgetall',
    '+zadd', '+zrange', '+zrank', '+zrem', '+zscore', '+pexpire', '+pttl', '+time', '+publish', '+subscribe', '+ping', '+info',
  ]; // prettier-ignore
  const PLACES = ['~lock:*', '&lock:wake:*'];

  async function connectAs(...rules: string[]): Promise<RedisLockStore> {
    await server.client.acl('SETUSER', 'locker', 'reset', 'on', '>secret', ...rules);
    await server.client.script('FLUSH');
    return openStore(`redis://locker:secret@127.0.0.1:${server.port}`);
  }

  test('the smallest ACL is enough for every operation', async () => {
    const own = await connectAs(...PLACES, ...RIGHTS);
    const service = makeLocks(own);
    const call = service.withLock('k', { ttl: 60_000 }, async (lock) => {
      await service.withLock('k', { ticket: lock.ticket }, () => undefined);
      await service.forceRelease('k', { fence: lock.fence });
      await until('the forced release', () => lock.signal.aborted);
      expect(lock.signal.reason).toMatchObject({ reason: 'forced' });
    });
    await expect(call).rejects.toMatchObject({ reason: 'forced' });
    expect(warnings).toEqual([]);
    await own.close();
  });

  const needed = RIGHTS.filter((right) => !['+publish', '+subscribe', '+ping', '+info'].includes(right));
  test.each(needed)('without %s the start fails with an error that names it', async (right) => {
    const failure = connectAs(...PLACES, ...RIGHTS.filter((other) => other !== right)).catch((error: Error) => error);
    const error = (await failure) as Error;
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect((error as LockError).detail).toMatch(new RegExp(`'?${right.slice(1)}\\b.*smallest ACL`, 'i'));
    for (const name of await server.client.keys('lock:lock:*')) {
      expect(await server.client.pttl(name)).toBeGreaterThan(0);
    }
  });

  test('locks that replicas confirm need the right to WAIT besides, and a start without it names it', async () => {
    const replica = await RedisServer.startReplica(server.port);
    await server.replicasOnline(1);
    await (await connectAs(...PLACES, ...RIGHTS)).close();
    const connect = (): Promise<RedisLockStore> => openStore(`redis://locker:secret@127.0.0.1:${server.port}`, { minReplicas: 1 });
    await expect(connect()).rejects.toThrow(saying(/'wait'.*smallest ACL/i));
    await expect(connect()).rejects.toBeInstanceOf(LockConfigurationError);
    expect(await server.client.keys('lock:lock:*')).toEqual([]);
    await server.client.acl('SETUSER', 'locker', '+wait');
    const own = await connect();
    expect(await makeLocks(own).withLock('k', { ttl: 600 }, () => sleep(500, 'result'))).toBe('result');
    expect(warnings).toEqual([]);
    await own.close();
    await replica.stop();
  });

  const without = (missing: string): Promise<RedisLockStore> => connectAs(...PLACES, ...RIGHTS.filter((right) => right !== missing));

  test.each([
    ['+publish', /Redis refused PUBLISH on lock:wake:\*: NOPERM .*'publish'.* every 300 ms/],
    ['+subscribe', /Redis refused SUBSCRIBE on lock:wake:\*: NOPERM .*'subscribe'.* every 300 ms/],
  ])('without %s a warning names it, and waiters poll', async (right, warning) => {
    const own = await without(right);
    await until('the warning', () => warnings.length > 0);
    const [limited, other] = [makeLocks(own), makeLocks(await openStore(server.url))];
    // A release publishes and a waiter receives: each of the two may lack the right.
    for (const [holder, waiter] of [[limited, other] as const, [other, limited] as const]) {
      const held = await holder.acquire('k');
      const waiting = waiter.withLock('k', () => performance.now());
      await sleep(100);
      const releasedAt = performance.now();
      await held.release();
      expect((await waiting) - releasedAt).toBeLessThan(900);
    }
    expect(warnings).toEqual([expect.stringMatching(warning)]);
    await Promise.all([limited.shutdown(), other.shutdown()]);
  });

  test('without +info locks work, and nothing is known of the policy', async () => {
    const skipped = jest.spyOn(console, 'warn').mockImplementation(() => undefined);
    await server.client.config('SET', 'maxmemory-policy', 'allkeys-lru');
    const own = await without('+info');
    expect(await makeLocks(own).withLock('k', () => 'ran')).toBe('ran');
    expect(warnings).toEqual([]);
    expect(skipped.mock.calls.flat().join(' ')).toMatch(/INFO/);
    await own.close();
    skipped.mockRestore();
  });

  test('without +ping the subscription stands: a refusal is an answer too', async () => {
    const own = await without('+ping');
    const subscribers = async (): Promise<string[]> =>
      String(await server.client.call('CLIENT', 'LIST', 'TYPE', 'pubsub'))
        .split('\n')
        .filter((line) => line.includes('user=locker'));
    const idOf = (line: string | undefined): string | undefined => /\bid=(\d+)/.exec(line ?? '')?.[1];
    await sleep(100);
    const [before] = await subscribers();
    // Two pings: the second one would find that the first was not answered.
    await sleep(10_800);
    expect((await subscribers()).map(idOf)).toEqual([idOf(before)]);
    expect(idOf(before)).toBeDefined();
    expect(warnings).toEqual([]);
    await own.close();
  });

  test('a key outside of the rights is named as a key', async () => {
    await expect(connectAs('~other:*', '&lock:wake:*', ...RIGHTS)).rejects.toThrow(saying(/one of the keys.*Grant the keys ~<prefix>:\*/));
  });

  test('a channel outside of the rights is a warning, locks work, and waiters poll', async () => {
    const own = await connectAs('~lock:*', '&other:*', ...RIGHTS);
    await until('the warnings', () => warnings.length === 2);
    expect(warnings.toSorted()).toEqual([
      expect.stringMatching(/refused PUBLISH on lock:wake:\*.*channel.*every 300 ms/),
      expect.stringMatching(/refused SUBSCRIBE on lock:wake:\*.*channel.*next renewal/),
    ]);
    const held = await locks.acquire('k');
    const polling = makeLocks(own).withLock('k', () => performance.now());
    await sleep(100);
    const releasedAt = performance.now();
    await held.release();
    expect((await polling) - releasedAt).toBeLessThan(400);
    await own.close();
  });
});

test('a client that the user closes does not take the locks along', async () => {
  const client = new Redis(server.port);
  const own = await openStore(client);
  await client.quit();
  expect(await makeLocks(own).withLock('k', () => 1)).toBe(1);
  await own.close();
});

/** The connections that have subscribed, as the server knows them. */
async function subscribedIds(): Promise<string[]> {
  const list = String(await server.client.call('CLIENT', 'LIST', 'TYPE', 'pubsub'));
  return [...list.matchAll(/^id=(\d+)/gm)].map(([, id]) => id as string);
}

test('notifications of forced releases arrive again after the subscription was cut', async () => {
  await until('a subscription', async () => (await subscribedIds()).length > 0);
  await server.client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
  await until('a new subscription', async () => (await subscribedIds()).length > 0);
  const call = locks.withLock('k', { ttl: 60_000 }, async (lock) => {
    await locks.forceRelease('k', { fence: lock.fence });
    await until('the forced release', () => lock.signal.aborted);
    expect(lock.isHeld()).toBe(false);
  });
  await expect(call).rejects.toMatchObject({ reason: 'forced' });
});

test('a half-open subscription is noticed by its pings, and made anew', async () => {
  await until('a subscription', async () => (await subscribedIds()).length > 0);
  const before = await subscribedIds();
  proxy.mode = 'blackhole';
  // Long enough to swallow one ping; the next one finds that it was not answered.
  await sleep(5_300);
  proxy.mode = 'pass';
  await sleep(5_300);
  // The server may still have the half-open one.
  await until('a new subscription', async () => (await subscribedIds()).some((id) => !before.includes(id)), 4_000);
  const call = locks.withLock('k', { ttl: 60_000 }, async (lock) => {
    await locks.forceRelease('k', { fence: lock.fence });
    await until('the forced release', () => lock.signal.aborted, 4_000);
    expect(lock.isHeld()).toBe(false);
  });
  await expect(call).rejects.toMatchObject({ reason: 'forced' });
});
