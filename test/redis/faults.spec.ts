import 'reflect-metadata';
import { Redis } from 'ioredis';
import { setTimeout as sleep } from 'node:timers/promises';
import { LockLostError, LockStoreError } from '../../lib/core/words/errors';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { answered } from '../support/patient';
import { makeLocks } from '../support/make-locks';
import { timeOf } from '../support/quickest';
import { freePort, RedisServer } from '../support/redis-server';
import { sourceOf } from '../support/redis-source';
import { inRedisWorld, loseNextReply, type RedisWorld } from '../support/redis-world';
import { saying } from '../support/saying';
import { sideBySide } from '../support/side-by-side';
import { until } from '../support/until';

// Most of the time is spent waiting.
const beside = sideBySide();

function testInWorld(name: string, run: (world: RedisWorld) => Promise<void>): void {
  beside(name, () => inRedisWorld(run));
}

const lockOf = (key: string): string => `lock:lock:{${key}}`;
const FENCE = 'lock:fence:{0}';
/** How many connections the server has had. */
const connections = async ({ client }: RedisServer): Promise<number> =>
  Number(/total_connections_received:(\d+)/.exec(await client.info('stats'))?.[1]);

testInWorld('a script that the server has forgotten is sent whole within the same time limit', async ({ server, proxy, locks }) => {
  await (await locks.acquire('k')).release();
  await server.client.script('FLUSH');
  proxy.latencyMs = 900;
  await expect(locks.acquire('k', { wait: 0 })).rejects.toThrow(saying(/no reply within (1000|9\d\d) ms/));
});

describe('a reply that is lost', () => {
  testInWorld("acquire's: the lock ends up held by us with the same fence", async ({ server, proxy, locks }) => {
    const cut = loseNextReply(proxy);
    const acquiring = locks.acquire('k', { ttl: 10_000 });
    await cut;
    const fence = await server.client.hget(lockOf('k'), 'fence');
    const lock = await acquiring;
    expect(String(lock.fence)).toBe(fence);
    expect(await locks.operations.inspect('k')).toMatchObject({ holds: 1 });
    await lock.release();
    expect(await locks.operations.inspect('k')).toBeNull();
  });

  testInWorld("acquire's, with a caller who gives up: the lock is released again", async ({ server, proxy, locks }) => {
    const before = await server.client.get(FENCE);
    proxy.mode = 'dropReplies';
    const refusal = expect(locks.acquire('k', { ttl: 60_000, wait: 0 })).rejects.toMatchObject({ code: 'LOCK_STORE', unknown: true });
    // The lock itself may be released again before it is seen.
    await until('the grant', async () => (await server.client.get(FENCE)) !== before);
    await refusal;
    proxy.mode = 'pass';
    await until('the release', async () => (await server.client.exists(lockOf('k'))) === 0);
  });

  testInWorld("release's: the result stands, and the release is sent again", async ({ server, proxy, locks, troubles }) => {
    const result = await locks.withLock('k', { ttl: 10_000 }, () => {
      void loseNextReply(proxy);
      return 'result';
    });
    expect(result).toBe('result');
    expect(troubles.map(({ type }) => type)).toEqual(['releaseFailed']);
    expect(await server.client.exists(lockOf('k'))).toBe(0);
    await sleep(600);
    expect(troubles).toHaveLength(1);
    expect(await locks.withLock('k', () => 'next')).toBe('next');
  });

  testInWorld(
    "release's, whose command is lost too: the lock is free soon, and no later than its lease",
    async ({ server, proxy, locks }) => {
      await locks.withLock('k', { ttl: 12_000 }, () => {
        proxy.mode = 'blackhole';
      });
      const leftMs = await server.client.pttl(lockOf('k'));
      expect(leftMs).toBeGreaterThan(0);
      proxy.mode = 'pass';
      expect(await timeOf(locks.withLock('k', { wait: 20_000 }, () => undefined))).toBeLessThan(leftMs);
    },
  );

  testInWorld("release's, of a lock with a long ttl: it is sent again within seconds", async ({ server, proxy, locks }) => {
    await locks.withLock('k', { ttl: '10m' }, () => {
      proxy.mode = 'blackhole';
    });
    expect(await server.client.exists(lockOf('k'))).toBe(1);
    proxy.mode = 'pass';
    await until('the release', async () => (await server.client.exists(lockOf('k'))) === 0);
  });

  testInWorld("renewal's: the next one follows, and nothing is lost", async ({ proxy, locks, troubles }) => {
    await locks.withLock('k', { ttl: 12_000 }, async (lock) => {
      proxy.mode = 'dropReplies';
      await sleep(4_500);
      proxy.mode = 'pass';
      await sleep(8_000);
      expect(lock.isHeld()).toBe(true);
    });
    expect(troubles.filter(({ type }) => type === 'lost')).toEqual([]);
  });
});

describe('a server that does not answer', () => {
  testInWorld('half-open connections are bounded by the command timeout, lost at the deadline, and made anew', async ({ proxy, locks }) => {
    const call = locks.withLock('k', { ttl: 600 }, async (lock) => {
      proxy.mode = 'blackhole';
      await sleep(700);
      expect(lock.isHeld()).toBe(false);
      // After a stall, the code is told in the next turn of the event loop.
      await until('that it is told', () => lock.signal.aborted);
      expect(lock.signal.reason).toBeInstanceOf(LockLostError);
      proxy.mode = 'pass';
    });
    await expect(call).rejects.toMatchObject({ reason: 'expired' });
    expect(await locks.withLock('k', { wait: 10_000 }, () => 1)).toBe(1);
  });

  testInWorld('a grant that comes after its own deadline is none, and is released', async ({ server, proxy, locks }) => {
    proxy.latencyMs = 150;
    await expect(locks.acquire('k', { ttl: 100, wait: 300 })).rejects.toBeInstanceOf(LockStoreError);
    proxy.latencyMs = 0;
    await until('that it is free', async () => (await server.client.exists(lockOf('k'))) === 0);
  });

  testInWorld(
    'a stopped server fails a call within its command timeout, and is used again when it goes on',
    async ({ server, locks, troubles }) => {
      server.pause();
      const startedAt = performance.now();
      await expect(locks.acquire('k', { wait: 0 })).rejects.toMatchObject({ code: 'LOCK_STORE', unknown: true });
      expect(performance.now() - startedAt).toBeLessThan(3_000);
      expect(troubles.map(({ type }) => type)).toEqual(['storeUnavailable']);
      server.resume();
      expect(await locks.withLock('k', { wait: 10_000 }, () => 1)).toBe(1);
    },
  );
});

describe('a slow connection', () => {
  testInWorld('is not taken for a dead one because one caller has a short ttl', async ({ proxy, locks }) => {
    proxy.latencyMs = 90;
    let failed = Infinity;
    // Once more where the machine stalled for a second, which is silence as well.
    for (let round = 0; round < 3 && failed > 0; round++) {
      failed = 0;
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
    }
    expect(failed).toBe(0);
  });

  testInWorld(
    'keeps the calls that have time left, though the server stands still for longer than one beside them may wait',
    async ({ server, locks }) => {
      for (let rounds = 0, tries = 1; rounds < 3; tries++) {
        // A round that shows nothing may have cost the connection, and leave locks.
        await locks.withLock('ready', { wait: 15_000 }, () => undefined);
        const before = await connections(server);
        const startedAt = performance.now();
        server.pause();
        const short = locks.acquire('short', { ttl: 200, wait: 0 }).catch((error: Error) => error);
        const calls = Array.from({ length: 5 }, (_, at) => locks.withLock(`k${tries} ${at}`, { ttl: 10_000, wait: 0 }, () => at));
        const ended = Promise.allSettled(calls);
        await sleep(400);
        server.resume();
        const results = await ended;
        expect(await short).toBeInstanceOf(LockStoreError);
        // Where the machine was busy for longer than a call may wait, the round shows nothing.
        if (performance.now() - startedAt < 800) {
          expect(results.filter(({ status }) => status === 'rejected')).toEqual([]);
          expect(await connections(server)).toBe(before);
          rounds++;
        }
      }
    },
  );

  test('is found to be half open within seconds, also after a reply that was late because the process stood still', () =>
    inRedisWorld(async ({ proxy, locks }) => {
      const late = locks.acquire('late', { wait: 10_000 });
      await sleep(0);
      const endsAt = performance.now() + 1_800;
      while (performance.now() < endsAt) {
        // Stands still, as if it were stopped; the proxy does too.
      }
      await (await late).release();
      proxy.mode = 'blackhole';
      await locks.acquire('k', { ttl: 400, wait: 0 }).catch(() => undefined);
      proxy.mode = 'pass';
      expect(await locks.withLock('k', { wait: 6_000 }, () => 1)).toBe(1);
    }));

  testInWorld('leaves nothing behind at shutdown: what was on its way is released', async ({ server, proxy, locks }) => {
    proxy.latencyMs = 700;
    const call = locks.acquire('k', { ttl: 20_000 }).catch((error: Error) => error);
    await sleep(30);
    await locks.shutdown();
    expect(await call).toMatchObject({ reason: 'shutdown' });
    // On a busy machine the release may still be on its way.
    await until('that nothing is left', async () => (await server.client.exists(lockOf('k'))) === 0);
  });

  test('is not made anew where it was the event loop that was blocked', () =>
    inRedisWorld(async ({ server, troubles, openStore }) => {
      // Without the proxy, which would be blocked as well.
      const own = await openStore(server.url);
      const locks = makeLocks(own, { onTrouble: (trouble) => troubles.push(trouble) });
      // Once more where the machine had stalled just before: commands are not spared twice in a row.
      await answered(async (tries) => {
        troubles.length = 0;
        const before = await connections(server);
        const acquiring = locks.acquire(`k${tries}`, { ttl: 4_000, wait: 0 });
        for (let turn = 0; turn < 50; turn++) {
          // Lets the command be sent, and no reply be read.
          await Promise.resolve();
        }
        if (typeof sourceOf(server.url) !== 'string') {
          // node-redis writes in an immediate, before any reply is read.
          await new Promise((resolve) => setImmediate(resolve));
        }
        const endsAt = performance.now() + 1_300;
        while (performance.now() < endsAt) {
          // Blocked past the command's limit; the reply lies unread.
        }
        await (await acquiring).release();
        expect(troubles).toEqual([]);
        expect(await connections(server)).toBe(before);
      });
      await own.close();
    }));
});

describe('closing', () => {
  const clients = async ({ client }: RedisServer): Promise<number> => ((await client.client('LIST')) as string).trim().split('\n').length;

  testInWorld('while the store opens leaves no connection behind', async ({ server }) => {
    const before = await clients(server);
    const own = new RedisLockStore(sourceOf(server.url));
    const opening = own.open({ prefix: 'lock', warn: () => undefined });
    await own.close();
    await expect(opening).rejects.toThrow(/was closed/);
    // As long as it takes to connect.
    await sleep(400);
    await until('that its connections are closed', async () => (await clients(server)) === before);
  });

  testInWorld('ends calls that wait for the first connection', async () => {
    const own = new RedisLockStore(sourceOf(`redis://127.0.0.1:${await freePort()}`));
    const service = makeLocks(own);
    const calls = Promise.allSettled([service.acquire('a'), service.acquire('b')]);
    await sleep(80);
    await service.shutdown();
    expect((await calls).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  });
});

describe('locks that vanish', () => {
  testInWorld(
    'a key deleted behind its back is lost within a renewal, aborts the signal and rejects the call',
    async ({ server, locks, troubles }) => {
      let toldAfter = Infinity;
      const call = locks.withLock('k', { ttl: 4_000 }, async (lock) => {
        const startedAt = performance.now();
        lock.signal.addEventListener('abort', () => (toldAfter = performance.now() - startedAt));
        await server.client.del(lockOf('k'));
        await until('the loss', () => lock.signal.aborted);
      });
      await expect(call).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
      await expect(call).rejects.toThrow(saying(/the store no longer has it\. It was deleted, flushed or evicted/));
      // By the first renewal, after 1,333 ms, and not by the end of the lease.
      expect(toldAfter).toBeLessThan(3_500);
      expect(troubles.map(({ type }) => type)).toEqual(['lost']);
    },
  );

  testInWorld('a loss that no renewal has found before the body ends is found by the release', async ({ server, locks }) => {
    const call = locks.withLock('k', async () => {
      await server.client.del(lockOf('k'));
    });
    await expect(call).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
  });
});

testInWorld('a client that the user closes does not take the locks along', async ({ server, openStore }) => {
  const client = new Redis(server.port);
  const own = await openStore(client);
  await client.quit();
  expect(await makeLocks(own).withLock('k', () => 1)).toBe(1);
  await own.close();
});

/** The connections that have subscribed, as the server knows them. */
async function subscribedIds({ client }: RedisServer): Promise<string[]> {
  const list = String(await client.call('CLIENT', 'LIST', 'TYPE', 'pubsub'));
  return [...list.matchAll(/^id=(\d+)/gm)].map(([, id]) => id as string);
}

testInWorld('notifications of forced releases arrive again after the subscription was cut', async ({ server, locks }) => {
  await until('a subscription', async () => (await subscribedIds(server)).length > 0);
  await server.client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
  await until('a new subscription', async () => (await subscribedIds(server)).length > 0);
  const call = locks.withLock('k', { ttl: 60_000 }, async (lock) => {
    await locks.operations.forceRelease('k', { fence: lock.fence });
    await until('the forced release', () => lock.signal.aborted);
    expect(lock.isHeld()).toBe(false);
  });
  await expect(call).rejects.toMatchObject({ reason: 'forced' });
});
