import 'reflect-metadata';
import { jest } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { LockConfigurationError, LockStoreError, type LockError } from '../../lib/core/words/errors';
import type { LockService } from '../../lib/nest/lock.service';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { makeLocks } from '../support/make-locks';
import { quickest } from '../support/quickest';
import { refusalOf } from '../support/refusal-of';
import { freePort, RedisServer } from '../support/redis-server';
import { sourceOf } from '../support/redis-source';
import { inRedisWorld, type RedisWorld } from '../support/redis-world';
import { saying } from '../support/saying';
import { sideBySide } from '../support/side-by-side';
import { until } from '../support/until';

// Most of the time is spent waiting.
const beside = sideBySide();

function testInWorld(name: string, run: (world: RedisWorld) => Promise<void>): void {
  beside(name, () => inRedisWorld(run));
}

const lockOf = (key: string): string => `lock:lock:{${key}}`;

describe('a server that refuses', () => {
  testInWorld(
    'out of memory: an acquire fails as unavailable and leaves nothing, renew and release still work',
    async ({ server, locks, troubles }) => {
      const shared = await Promise.all([
        locks.acquire('read', { mode: 'read', ttl: 4_000 }),
        locks.acquirePermit('permits', 3, { ttl: 4_000 }),
        locks.acquirePermit('permits', 3, { ttl: 4_000 }),
      ]);
      await locks.withLock('k', { ttl: 4_000 }, async (lock) => {
        await server.client.config('SET', 'maxmemory', '1');
        await expect(locks.acquire('other', { wait: 0 })).rejects.toMatchObject({ code: 'LOCK_STORE', unknown: false });
        expect(await server.client.exists(lockOf('other'))).toBe(0);
        await sleep(4_500);
        expect([lock, ...shared].map((held) => held.isHeld())).toEqual([true, true, true, true]);
      });
      await Promise.all(shared.map((held) => held.release()));
      expect(await server.client.exists(...['k', 'read', 'permits'].map(lockOf))).toBe(0);
      await server.client.config('SET', 'maxmemory', '0');
      expect(troubles.filter(({ type }) => type !== 'storeUnavailable')).toEqual([]);
    },
  );

  testInWorld('READONLY: a replica is tried again within the wait, then the error names the cause', async ({ server, locks }) => {
    await server.client.replicaof('127.0.0.1', '1');
    await expect(locks.acquire('k', { wait: 0 })).rejects.toThrow(saying(/READONLY/));
    const waiting = locks.withLock('k', { wait: 10_000 }, () => 1);
    await sleep(200);
    await server.client.replicaof('NO', 'ONE');
    expect(await waiting).toBe(1);
  });

  testInWorld('a server that is busy with a script is told to be busy, and not away', async ({ server, locks, troubles }) => {
    await server.client.config('SET', 'busy-reply-threshold', 50);
    const script = server.client.duplicate();
    const running = script.eval('while true do end', 0).catch(() => undefined);
    await until('that it is busy', async () => (await server.client.ping().catch(() => 'BUSY')) === 'BUSY');
    const { detail } = (await refusalOf(() => locks.acquire('k', { wait: 1_500 }))) as LockError;
    await server.client.script('KILL');
    await running;
    script.disconnect();
    expect(detail).toMatch(/^Lock "k": Redis failed: BUSY .*\. The call may be repeated once that is over\.$/);
    const told = troubles.find(({ type }) => type === 'storeUnavailable');
    expect(told).toMatchObject({ error: { detail: expect.stringContaining('Redis failed: BUSY') as unknown } });
    expect(await locks.withLock('k', { wait: 20_000 }, () => 'in')).toBe('in');
  });

  testInWorld('a server that takes no more clients is told to be full of them', async ({ server, openStore }) => {
    const store = await openStore(server.url);
    const locks = makeLocks(store);
    const { 1: most = '' } = (await server.client.config('GET', 'maxclients')) as readonly string[];
    await server.client.config('SET', 'maxclients', 1);
    await server.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    // node-redis forgets what the server has said.
    const isTold = !(process.env['TEST_REDIS_CLIENT'] ?? '').startsWith('node-redis');
    const words = isTold ? /max number of clients reached\. Raise maxclients of the server, .*\.$/ : /the connection was lost/;
    // The server's refusal is lost where the client has written before it.
    await until('that it is told', async () =>
      locks.acquire('k', { wait: 0 }).then(
        () => false,
        ({ detail }: LockError) => words.test(detail),
      ),
    );
    await server.client.config('SET', 'maxclients', most);
    expect(await locks.withLock('k', { wait: 20_000 }, () => 'in')).toBe('in');
    await store.close();
  });

  testInWorld('a foreign key under the prefix is a clear error', async ({ server, locks }) => {
    await server.client.set(lockOf('k'), 'mine');
    await expect(locks.acquire('k')).rejects.toThrow(saying(/WRONGTYPE.*Choose another prefix/));
    await expect(locks.acquire('k')).rejects.toBeInstanceOf(LockConfigurationError);
  });

  testInWorld('a foreign key in the place of one lock does not take the others along', async ({ server, locks }) => {
    const held = await Promise.all(['a', 'b', 'c'].map((key) => locks.acquire(key, { ttl: 4_000 })));
    await server.client.set(lockOf('b'), 'mine');
    await sleep(4_500);
    expect(held.map((lock) => lock.isHeld())).toEqual([true, false, true]);
    await Promise.all(held.map((lock) => lock.release()));
  });

  testInWorld('a server that is away is not taken for a lock that is busy by those who queue behind', async ({ server, locks }) => {
    await server.kill();
    // Until the store has noticed, an attempt may be on its way for as long as the calls below wait.
    await expect(locks.acquire('other', { wait: 0 })).rejects.toBeInstanceOf(LockStoreError);
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

  testInWorld('an outage is reported once, and the next one within a minute with it', async ({ server, locks, troubles }) => {
    for (let round = 0; round < 2; round++) {
      await server.kill();
      await locks.acquire('k', { wait: 0 }).catch(() => undefined);
      await locks.acquire('k', { wait: 0 }).catch(() => undefined);
      expect(troubles.filter(({ type }) => type === 'storeUnavailable')).toHaveLength(1);
      await server.start();
      await locks.withLock('k', { wait: 15_000 }, () => undefined);
      expect(troubles.filter(({ type }) => type === 'storeAnswered')).toHaveLength(1);
    }
  });

  testInWorld('a wrong password fails at start, naming what to correct and not the password', async ({ server, openStore }) => {
    await server.client.config('SET', 'requirepass', 'right');
    const failure = openStore(`redis://:wrong-password@127.0.0.1:${server.port}`).catch((error: Error) => error);
    const error = (await failure) as Error;
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect((error as LockError).detail).toMatch(/WRONGPASS.*Correct the user name and password/);
    expect((error as LockError).detail).not.toContain('wrong-password');
    expect(inspect(error, { depth: 10 })).not.toContain('wrong-password');
    await expect(openStore(server.url)).rejects.toThrow(saying(/NOAUTH.*Correct the user name and password/));
  });

  testInWorld('a password that was wrong for a moment does not outlast it', async ({ server, openStore }) => {
    const own = await openStore(`redis://default:secret@127.0.0.1:${server.port}`);
    const service = makeLocks(own);
    await service.withLock('k', () => 1);
    await server.client.config('SET', 'requirepass', 'other');
    await server.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await sleep(300);
    await server.client.config('SET', 'requirepass', 'secret');
    const isOver = (): Promise<boolean> => service.withLock('k', { wait: 0 }, () => true).catch(() => false);
    await until('a lock', isOver, 10_000);
    await own.close();
  });

  testInWorld('an error shows no owners, in none of its properties', async ({ server, locks, troubles }) => {
    const lock = await locks.acquire('k', { ttl: 6_000 });
    const owner = (await server.client.hget(lockOf('k'), 'owner')) as string;
    await server.client.acl('SETUSER', 'default', '-evalsha', '-eval');
    await until('a renewal that is refused', () => troubles.length > 0);
    const error = await locks.operations.inspect('k').catch((failure: unknown) => failure);
    expect(troubles.map(({ type }) => type)).toEqual(['storeUnavailable']);
    await server.client.acl('SETUSER', 'default', '+evalsha', '+eval');
    expect(inspect([error, troubles], { depth: 10 })).not.toContain(owner);
    await lock.release();
  });

  testInWorld(
    'a database that cannot be selected is refused, and the locks are not put into another one',
    async ({ server, openStore }) => {
      await expect(openStore(`${server.url}/99`)).rejects.toThrow(
        saying(/refused to set the connection up: ERR DB index is out of range\. Correct the database/),
      );
      // Of the start of the other store, something may have been late.
      await until('that nothing is left', async () => (await server.client.keys('lock:lock:*')).length === 0);
      const own = await openStore(`${server.url}/3`);
      await makeLocks(own).withLock('k', async () => {
        await server.client.select(3);
        expect(await server.client.exists(lockOf('k'))).toBe(1);
        await server.client.select(0);
      });
      await own.close();
    },
  );

  testInWorld('an unreachable server at start is a warning, and calls fail clearly until it is there', async ({ warnings, openStore }) => {
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
});

describe('access control', () => {
  const RIGHTS = [
    '+evalsha', '+eval', '+get', '+getset', '+set', '+del', '+exists', '+hget', '+hset', '+hdel', '+hlen', '+hmget', '+hgetall',
    '+zadd', '+zrange', '+zrank', '+zrem', '+zscore', '+pexpire', '+pttl', '+time', '+publish', '+subscribe', '+ping', '+info',
  ]; // prettier-ignore
  const PLACES = ['~lock:*', '&lock:wake:*'];

  /** A waiter that polls does so every 300 ms; on a machine that stalls, not each time. */
  const POLLED_MS = 1_800;

  function handOver(holder: LockService, waiter: LockService): Promise<number> {
    return quickest(POLLED_MS, async () => {
      const held = await holder.acquire('k', { wait: 10_000 });
      const waiting = waiter.withLock('k', { wait: 10_000 }, () => performance.now());
      await sleep(100);
      const releasedAt = performance.now();
      await held.release();
      return (await waiting) - releasedAt;
    });
  }

  async function connectAs({ server, openStore }: RedisWorld, ...rules: string[]): Promise<RedisLockStore> {
    await server.client.acl('SETUSER', 'locker', 'reset', 'on', '>secret', ...rules);
    await server.client.script('FLUSH');
    return openStore(`redis://locker:secret@127.0.0.1:${server.port}`);
  }

  testInWorld('the smallest ACL is enough for every operation', async (world) => {
    const { warnings } = world;
    const own = await connectAs(world, ...PLACES, ...RIGHTS);
    const service = makeLocks(own);
    const isSubscribed = (): Promise<boolean> =>
      own.health().then(
        ({ hearsTurns }) => hearsTurns === true,
        () => false,
      );
    await until('the subscription', isSubscribed);
    const call = service.withLock('k', { ttl: 60_000 }, async (lock) => {
      await service.withLock('k', { ticket: lock.makeTicket() }, () => undefined);
      await service.operations.forceRelease('k', { fence: lock.fence });
      await until('the forced release', () => lock.signal.aborted);
      expect(lock.signal.reason).toMatchObject({ reason: 'forced' });
    });
    await expect(call).rejects.toMatchObject({ reason: 'forced' });
    expect(warnings).toEqual([]);
    await own.close();
  });

  const needed = RIGHTS.filter((right) => !['+publish', '+subscribe', '+ping', '+info'].includes(right));
  testInWorld('a user without any other right (NOPERM) cannot start: the error names it', async (world) => {
    const { server } = world;
    for (const right of needed) {
      const failure = connectAs(world, ...PLACES, ...RIGHTS.filter((other) => other !== right)).catch((error: Error) => error);
      const error = (await failure) as Error;
      expect(error).toBeInstanceOf(LockConfigurationError);
      expect((error as LockError).detail).toMatch(new RegExp(`'?${right.slice(1)}\\b.*smallest ACL`, 'i'));
      for (const name of await server.client.keys('lock:lock:*')) {
        // Gone by now, or with an expiry.
        expect(await server.client.pttl(name)).not.toBe(-1);
      }
    }
  });

  testInWorld('locks that replicas confirm need the right to WAIT besides, and a start without it names it', async (world) => {
    const { server, warnings, openStore } = world;
    const replica = await RedisServer.startReplica(server.port);
    await server.replicasOnline(1);
    await (await connectAs(world, ...PLACES, ...RIGHTS)).close();
    const connect = (): Promise<RedisLockStore> => openStore(`redis://locker:secret@127.0.0.1:${server.port}`, { minReplicas: 1 });
    await expect(connect()).rejects.toThrow(saying(/'wait'.*smallest ACL/i));
    await expect(connect()).rejects.toBeInstanceOf(LockConfigurationError);
    // The release of a start that a stall made late comes later.
    await until('that nothing is left', async () => (await server.client.keys('lock:lock:*')).length === 0);
    await server.client.acl('SETUSER', 'locker', '+wait');
    const own = await connect();
    expect(await makeLocks(own).withLock('k', { ttl: 3_000, wait: 20_000 }, () => sleep(1_500, 'result'))).toBe('result');
    expect(warnings).toEqual([]);
    await own.close();
    await replica.stop();
  });

  const without = (world: RedisWorld, missing: string): Promise<RedisLockStore> =>
    connectAs(world, ...PLACES, ...RIGHTS.filter((right) => right !== missing));

  for (const [right, warning] of [
    ['+publish', /Redis refused PUBLISH on lock:wake:\*: NOPERM .*'publish'.* every 300 ms/],
    ['+subscribe', /Redis refused SUBSCRIBE on lock:wake:\*: NOPERM .*'subscribe'.* every 300 ms/],
  ] as const) {
    testInWorld(`without ${right} a warning names it, and waiters poll`, async (world) => {
      const { server, warnings, openStore } = world;
      const own = await without(world, right);
      await until('the warning', () => warnings.length > 0);
      const [limited, other] = [makeLocks(own), makeLocks(await openStore(server.url))];
      // A release publishes and a waiter receives: each of the two may lack the right.
      for (const [holder, waiter] of [[limited, other] as const, [other, limited] as const]) {
        expect(await handOver(holder, waiter)).toBeLessThan(POLLED_MS);
      }
      expect(warnings).toEqual([expect.stringMatching(warning)]);
      await Promise.all([limited.shutdown(), other.shutdown()]);
    });
  }

  test('without +info locks work, and nothing is known of the policy', () =>
    inRedisWorld(async (world) => {
      const { server, warnings } = world;
      const skipped = jest.spyOn(console, 'warn').mockImplementation(() => undefined);
      await server.client.config('SET', 'maxmemory-policy', 'allkeys-lru');
      const own = await without(world, '+info');
      expect(await makeLocks(own).withLock('k', () => 'ran')).toBe('ran');
      expect(warnings).toEqual([]);
      // ioredis warns of it itself.
      expect(skipped.mock.calls.flat().join(' ')).toMatch(typeof sourceOf(server.url) === 'string' ? /INFO/ : /^$/);
      await own.close();
      skipped.mockRestore();
    }));

  testInWorld('without +ping the subscription stands: a refusal is an answer too', async (world) => {
    const { server, warnings } = world;
    const own = await without(world, '+ping');
    const subscribers = async (): Promise<string[]> =>
      String(await server.client.call('CLIENT', 'LIST', 'TYPE', 'pubsub'))
        .split('\n')
        .filter((line) => line.includes('user=locker'));
    const idOf = (line: string | undefined): string | undefined => /\bid=(\d+)/.exec(line ?? '')?.[1];
    // One of a start that was too slow may still be there.
    await until('the subscription', async () => (await subscribers()).length === 1);
    const [before] = await subscribers();
    // Two pings: the second one would find that the first was not answered.
    await sleep(10_800);
    expect((await subscribers()).map(idOf)).toEqual([idOf(before)]);
    expect(idOf(before)).toBeDefined();
    expect(warnings).toEqual([]);
    await own.close();
  });

  testInWorld('NOPERM: a key outside of the rights is named as a key', async (world) => {
    await expect(connectAs(world, '~other:*', '&lock:wake:*', ...RIGHTS)).rejects.toThrow(
      saying(/one of the keys.*Grant the keys ~<prefix>:\*/),
    );
  });

  testInWorld('a channel outside of the rights is a warning, locks work, and waiters poll', async (world) => {
    const { locks, warnings } = world;
    const own = await connectAs(world, '~lock:*', '&other:*', ...RIGHTS);
    await until('the warnings', () => warnings.length === 2);
    expect(warnings.toSorted()).toEqual([
      expect.stringMatching(/refused PUBLISH on lock:wake:\*.*channel.*every 300 ms/),
      expect.stringMatching(/refused SUBSCRIBE on lock:wake:\*.*channel.*next renewal/),
    ]);
    expect(await handOver(locks, makeLocks(own))).toBeLessThan(POLLED_MS);
    await own.close();
  });
});
