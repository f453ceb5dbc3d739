import { setTimeout as sleep } from 'node:timers/promises';
import { LockConfigurationError, LockLostError, LockStoreError } from '../../lib/core/words/errors';
import type { AcquireReply } from '../../lib/core/seam/lock-store';
import { TRIAL_KEY } from '../../lib/core/watching/trials';
import type { LockTrouble } from '../../lib/core/words/lock-event';
import type { LockService } from '../../lib/nest/lock.service';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { RENEW } from '../../lib/redis/scripts/scripts';
import { untilWaiting } from '../support/hand-over';
import { makeLocks } from '../support/make-locks';
import { newHold } from '../support/new-hold';
import { noWarning } from '../support/no-warning';
import { quickest, timeOf } from '../support/quickest';
import { RedisServer } from '../support/redis-server';
import { sourceOf } from '../support/redis-source';
import { loseNextReply } from '../support/redis-world';
import { sendsAgain } from '../support/sends-again';
import { sideBySide } from '../support/side-by-side';
import { TcpProxy } from '../support/tcp-proxy';
import { until } from '../support/until';

/** For a machine that is busy with other things. */
const SLACK_MS = 2_000;

/** A master and a replica of a test's own. */
interface World {
  readonly master: RedisServer;
  readonly link: TcpProxy;
  readonly replica: RedisServer;
  readonly locks: LockService;
  readonly stores: RedisLockStore[];
  readonly troubles: LockTrouble[];
  readonly warnings: string[];
  openStore(url?: string, minReplicas?: number): Promise<RedisLockStore>;
  serviceOf(store: RedisLockStore): LockService;
  /** Between a store and the master. */
  startProxy(): Promise<TcpProxy>;
  /** The connection of the replica stays half open; what the master writes does not reach it. */
  breakLink(): void;
  /** The replica connects anew, within a second. */
  mendLink(): void;
  failOver(): Promise<void>;
  storedLocks(): Promise<string[]>;
}

async function inWorld(run: (world: World) => Promise<void>): Promise<void> {
  const master = await RedisServer.start();
  const link = await TcpProxy.start(master.port);
  const replica = await RedisServer.startReplica(link.port);
  await master.replicasOnline(1);
  const stores: RedisLockStore[] = [];
  const proxies = [link];
  const troubles: LockTrouble[] = [];
  const warnings: string[] = [];
  const openStore = async (url = master.url, minReplicas = 1): Promise<RedisLockStore> => {
    const store = new RedisLockStore(sourceOf(url), { minReplicas });
    stores.push(store);
    await store.open({ prefix: 'lock', warn: (message) => warnings.push(message) });
    return store;
  };
  const serviceOf = (store: RedisLockStore): LockService =>
    makeLocks(store, { wait: 15_000, onTrouble: (trouble) => troubles.push(trouble) });
  try {
    const locks = serviceOf(await openStore());
    warnings.length = 0;
    await run({
      master,
      link,
      replica,
      locks,
      stores,
      troubles,
      warnings,
      openStore,
      serviceOf,
      startProxy: async () => {
        const proxy = await TcpProxy.start(master.port);
        proxies.push(proxy);
        return proxy;
      },
      breakLink: () => {
        link.mode = 'blackhole';
      },
      mendLink: () => {
        link.mode = 'pass';
        link.cut();
      },
      failOver: async () => {
        await master.kill();
        await replica.client.replicaof('NO', 'ONE');
      },
      // The lock of a start or of a trial may be left for a while, where the machine stalled.
      storedLocks: async () =>
        (await master.client.keys('lock:lock:*')).filter((name) => !name.includes('start-up check') && !name.includes(TRIAL_KEY)),
    });
  } finally {
    await Promise.all(stores.map((store) => store.close()));
    await Promise.all(proxies.map((proxy) => proxy.stop()));
    await Promise.all([replica.stop(), master.stop()]);
  }
}

const beside = sideBySide({ atOnce: 4 });

/** For what needs a whole processor. */
function testAlone(name: string, run: (world: World) => Promise<void>): void {
  test(name, () => inWorld(run), 60_000);
}

function testInWorld(name: string, run: (world: World) => Promise<void>): void {
  beside(name, () => inWorld(run));
}

/** The refusal of a grant that too few replicas have. */
const FIGURES =
  /^Lock "k": 0 of 1 replicas confirmed the grant within (500|[1-4]\d\d) ms\. Make sure that enough replicas are connected and keep up, or lower minReplicas of RedisLockStore\.$/;

const lockOf = (key: string): string => `lock:lock:{${key}}`;
const failureOf = (call: Promise<unknown>): Promise<LockStoreError> =>
  call.then(
    () => Promise.reject(new Error('granted')),
    (error) => error as LockStoreError,
  );

describe('a grant', () => {
  testInWorld('counts once a replica has it', async ({ link, replica, locks }) => {
    link.latencyMs = 100;
    await locks.withLock('k', { ttl: 20_000, wait: 15_000 }, async () => expect(await replica.client.exists(lockOf('k'))).toBe(1));
  });

  testInWorld(
    'outlasts its master: nobody else gets the lock from the replica that takes over',
    async ({ link, replica, locks, openStore, serviceOf, failOver }) => {
      link.latencyMs = 100;
      const lock = await locks.acquire('k', { ttl: 60_000, wait: 15_000 });
      await failOver();
      const others = serviceOf(await openStore(replica.url, 0));
      await expect(others.acquire('k', { wait: 3_000 })).rejects.toMatchObject({ code: 'LOCK_NOT_ACQUIRED' });
      expect(await others.operations.inspect('k')).toMatchObject({ fence: lock.fence });
    },
  );

  for (const [what, fail] of [
    ['whose link is broken', ({ breakLink }: World) => breakLink()],
    ['that is stopped', ({ replica }: World) => replica.pause()],
    ['that is gone', ({ replica }: World) => replica.kill()],
  ] as const) {
    testInWorld(`that waits for a replica ${what} is undone within the time of a command, and the error has the figures`, async (world) => {
      const { locks, troubles, storedLocks } = world;
      await fail(world);
      const attempt = (): Promise<LockStoreError> => failureOf(locks.acquire('k', { ttl: 20_000, wait: 0 }));
      const first = attempt();
      expect(await timeOf(first)).toBeLessThan(1_000 + SLACK_MS);
      let error = await first;
      for (let round = 0; round < 10 && (error.unknown || !FIGURES.test(error.detail)); round++) {
        // A machine that stalls leaves the withdrawal no time, or the connection that it broke; it is repeated then.
        await sleep(250);
        await until('that it is undone', async () => (await storedLocks()).length === 0);
        error = await attempt();
      }
      expect(error).toBeInstanceOf(LockStoreError);
      expect(error).toMatchObject({ key: 'k', unknown: false });
      expect(error.detail).toMatch(FIGURES);
      expect(await storedLocks()).toEqual([]);
      expect(troubles.map(({ type }) => type)).toEqual(['storeUnavailable']);
    });
  }

  testInWorld(
    'is tried again while its caller waits, until the replica is back',
    async ({ replica, locks, troubles, breakLink, mendLink, storedLocks }) => {
      breakLink();
      const acquiring = locks.acquire('k', { ttl: 6_000, wait: 20_000 });
      await until('the first attempt has failed', async () => troubles.length > 0, 10_000);
      mendLink();
      const lock = await acquiring;
      // Each attempt that fails is told anew where the store had answered in between.
      expect(troubles[0]?.type).toBe('storeUnavailable');
      expect(troubles.at(-1)?.type).toBe('storeAnswered');
      expect(await replica.client.hget(lockOf('k'), 'fence')).toBe(String(lock.fence));
      expect(await locks.operations.inspect('k')).toMatchObject({ holds: 1, fence: lock.fence });
      await lock.release();
      await until('that it is free', async () => (await storedLocks()).length === 0);
    },
  );

  testInWorld(
    'whose reply was lost is no more confirmed when it is asked for again',
    async ({ openStore, serviceOf, breakLink, storedLocks, startProxy }) => {
      const proxy = await startProxy();
      const service = serviceOf(await openStore(proxy.url));
      breakLink();
      const cut = loseNextReply(proxy);
      const call = failureOf(service.acquire('k', { ttl: 8_000, wait: 2_500 }));
      await cut;
      expect(await call).toBeInstanceOf(LockStoreError);
      await until('that it is undone', async () => (await storedLocks()).length === 0);
    },
  );

  testInWorld(
    'that could not be undone either fails within the time of a command, and is released in the background',
    async ({ openStore, serviceOf, breakLink, mendLink, storedLocks, startProxy }) => {
      const proxy = await startProxy();
      const service = serviceOf(await openStore(proxy.url));
      let stored: string[] = [];
      // A machine that stalls keeps the grant from the server, or lets the withdrawal through.
      for (let round = 0; round < 10 && stored.length === 0; round++) {
        await service.withLock('k', () => undefined);
        breakLink();
        const startedAt = performance.now();
        const call = failureOf(service.acquire('k', { ttl: 20_000, wait: 0 }));
        await sleep(250);
        proxy.mode = 'blackhole';
        const failure = await call;
        // Core would stop waiting at 1,100 ms, and try again while the store still takes back what it did before.
        expect(performance.now() - startedAt).toBeLessThan(1_100 + SLACK_MS);
        stored = await storedLocks();
        expect(failure).toMatchObject({ key: 'k', unknown: failure.unknown || stored.length > 0 });
        proxy.mode = 'pass';
        await until('the lock is free', async () => (await storedLocks()).length === 0);
        mendLink();
      }
      expect(stored).toEqual([lockOf('k')]);
    },
  );

  testInWorld(
    'is not taken back by what is left of an earlier attempt that was undone late',
    async ({ locks, troubles, openStore, serviceOf, breakLink, mendLink, storedLocks, startProxy }) => {
      const proxy = await startProxy();
      const service = serviceOf(await openStore(proxy.url));
      let isLate = false;
      // A machine that stalls lets the release through.
      for (let round = 0; round < 10 && !isLate; round++) {
        await service.withLock('k', () => undefined);
        breakLink();
        troubles.length = 0;
        const acquiring = service.acquire('k', { ttl: 10_000, wait: 20_000 });
        await until('the first attempt', async () => (await storedLocks()).length === 1);
        await sleep(100);
        // The release of what no replica confirmed stays on its way.
        proxy.mode = 'withhold';
        await until('that the attempt failed', async () => troubles.length > 0);
        isLate = proxy.withholds;
        proxy.mode = 'pass';
        mendLink();
        const lock = await acquiring;
        await (isLate && proxy.deliverFirst());
        expect(await locks.operations.inspect('k')).toMatchObject({ fence: lock.fence, holds: 1 });
        expect(await locks.tryAcquire('k')).toBeNull();
        await lock.release();
        await until('that it is free', async () => (await storedLocks()).length === 0);
      }
      expect(isLate).toBe(true);
    },
  );

  testInWorld(
    'is left to the next attempt at the hold where core has given up the one before',
    async ({ stores, breakLink, mendLink, storedLocks }) => {
      const store = stores[0] as RedisLockStore;
      breakLink();
      // Half of it is for the replica: several processes may stand still before the second attempt is there.
      const hold = newHold('k', { ttlMs: 120_000, limitMs: 20_000 });
      const given = failureOf(store.acquire(hold));
      await until('the first attempt', async () => (await storedLocks()).length === 1);
      // As after a stall of the event loop: the time of core is over, and that of the store not yet.
      const again = sendsAgain(store).acquire({ ...hold, limitMs: 80_000 });
      // A failure below must not be hidden by a rejection that nobody waits for.
      again.catch(() => undefined);
      expect(await given).toMatchObject({ unknown: true });
      mendLink();
      const { fence } = (await again) as { fence: number };
      expect(await store.inspect('k')).toMatchObject({ fence, holds: 1 });
      expect(await store.release({ ...hold, fence })).toBe(true);
    },
  );

  testInWorld(
    'is left to the last of three attempts at the hold, also where the first of them has failed before that',
    async ({ stores, breakLink, mendLink, storedLocks }) => {
      const store = stores[0] as RedisLockStore;
      breakLink();
      const hold = newHold('k', { ttlMs: 120_000 });
      const attempt = (limitMs: number): Promise<AcquireReply> => {
        const asked = store.acquire({ ...hold, limitMs });
        asked.catch(() => undefined);
        return asked;
      };
      const first = attempt(4_000);
      await until('the first attempt', async () => (await storedLocks()).length === 1);
      const second = attempt(10_000);
      expect(await failureOf(first)).toMatchObject({ unknown: true });
      const third = attempt(80_000);
      expect(await failureOf(second)).toMatchObject({ unknown: true });
      mendLink();
      const { fence } = (await third) as { fence: number };
      expect(await store.inspect('k')).toMatchObject({ fence, holds: 1 });
      expect(await store.release({ ...hold, fence })).toBe(true);
    },
  );

  testInWorld(
    'is waited for as long as its own lease allows, also together with one of a short lease',
    async ({ stores, locks, breakLink, mendLink, storedLocks }) => {
      const store = stores[0] as RedisLockStore;
      // On a machine that stalled at the start, the connection is made anew, and whoever asks meanwhile is refused.
      await locks.withLock('first', () => undefined);
      breakLink();
      const acquire = (key: string, limitMs: number): Promise<AcquireReply> => store.acquire(newHold(key, { ttlMs: 120_000, limitMs }));
      const before = failureOf(acquire('before', 4_000));
      await until('the first attempt', async () => (await storedLocks()).length === 1);
      // These two wait for the connection, and are confirmed by one command.
      const [short, long] = [failureOf(acquire('short', 3_000)), acquire('long', 60_000)];
      long.catch(() => undefined);
      await Promise.all([before, short]);
      await sleep(2_500);
      mendLink();
      expect(await long).toMatchObject({ fence: expect.any(Number) as number });
    },
  );

  testInWorld(
    'that was undone puts no blame on the subscription when its place in the queue is gone',
    async ({ master, locks, openStore, serviceOf, breakLink }) => {
      const others = serviceOf(await openStore(master.url, 0));
      const subscribers = async (): Promise<string[]> => {
        const list = (await master.client.client('LIST', 'TYPE', 'PUBSUB')) as string;
        return [...list.matchAll(/^id=(\d+)/gm)].map(([, id]) => id as string).toSorted();
      };
      // A subscription that is new is trusted in any case.
      await sleep(5_100);
      const before = await subscribers();
      const first = await others.acquire('k');
      const call = failureOf(locks.acquire('k', { ttl: 4_000, wait: 1_800 }));
      await sleep(200);
      breakLink();
      await first.release();
      await sleep(200);
      const second = await others.acquire('k', { wait: 15_000 });
      await call;
      expect(await subscribers()).toEqual(before);
      await second.release();
    },
  );

  testInWorld(
    'of several keys leaves none of them where one is not confirmed',
    async ({ locks, openStore, serviceOf, breakLink, storedLocks }) => {
      const other = await serviceOf(await openStore()).acquire('b');
      const call = failureOf(locks.acquire(['a', 'b'], { ttl: 8_000, wait: 4_000 }));
      // It has the first one, confirmed.
      await untilWaiting(locks, 'b');
      expect(await storedLocks()).toHaveLength(2);
      breakLink();
      await other.release();
      expect(await call).toBeInstanceOf(LockStoreError);
      await until('that both are free', async () => (await storedLocks()).length === 0);
    },
  );

  testInWorld('of several keys is on the replica with all of them', async ({ link, replica, locks }) => {
    link.latencyMs = 50;
    const lock = await locks.acquire(['a', 'b', 'c']);
    expect(await replica.client.exists(lockOf('a'), lockOf('b'), lockOf('c'))).toBe(3);
    await lock.release();
  });

  testInWorld(
    'by a ticket counts once a replica has it, and takes nothing from the holder where none has',
    async ({ link, replica, locks, openStore, serviceOf, breakLink }) => {
      link.latencyMs = 100;
      const lock = await locks.acquire('k', { ttl: 20_000 });
      const guests = serviceOf(await openStore());
      await guests.withLock('k', { ticket: lock.makeTicket(), wait: 15_000 }, async () => {
        // More, where an attempt that a stall made late is still to be taken out.
        expect(await replica.client.hlen(lockOf('k'))).toBeGreaterThanOrEqual(7);
      });
      breakLink();
      const error = await failureOf(guests.acquire('k', { ticket: lock.makeTicket(), wait: 0 }));
      expect(error).toBeInstanceOf(LockStoreError);
      await until('that the guest is out', async () => (await locks.operations.inspect('k'))?.holds === 1);
      expect(lock.isHeld()).toBe(true);
      await lock.release();
    },
  );
});

describe('an exchange within a process', () => {
  testInWorld(
    'to a caller whose grant no replica has: the lock is free, and the release stands without an alarm',
    async ({ locks, troubles, breakLink, mendLink, storedLocks }) => {
      let next: Promise<LockStoreError> | undefined;
      const result = await locks.withLock('k', { ttl: 12_000 }, async () => {
        next = failureOf(locks.acquire('k', { ttl: 12_000, wait: 1_500, reentry: 'never' }));
        await sleep(400);
        breakLink();
        return 'result';
      });
      expect(result).toBe('result');
      expect(await next).toBeInstanceOf(LockStoreError);
      await until('that it is free', async () => (await storedLocks()).length === 0);
      expect(troubles.filter(({ type }) => type !== 'storeUnavailable' && type !== 'storeAnswered')).toEqual([]);
      mendLink();
      expect(await locks.withLock('k', { wait: 15_000 }, () => 1)).toBe(1);
    },
  );

  testInWorld(
    'to a caller who still waits: it is granted when the replica is back',
    async ({ locks, breakLink, mendLink, storedLocks }) => {
      let next: Promise<number> | undefined;
      const before = await locks.withLock('k', { ttl: 12_000 }, async ({ fence }) => {
        next = locks.withLock('k', { ttl: 12_000, wait: 20_000, reentry: 'never' }, (lock) => lock.fence);
        await sleep(100);
        breakLink();
        setTimeout(mendLink, 800);
        return fence;
      });
      expect(await next).toBeGreaterThan(before);
      await until('that it is free', async () => (await storedLocks()).length === 0);
    },
  );
});

describe('a renewal', () => {
  testInWorld(
    'that no replica has moves no deadline: the lease is lost at its end, though the master would keep it',
    async ({ master, locks, troubles, breakLink, storedLocks }) => {
      const startedAt = performance.now();
      const call = locks.withLock('k', { ttl: 6_000 }, async (lock) => {
        breakLink();
        const grantedAt = performance.now();
        const leftMs = (): number => grantedAt + 6_000 - performance.now();
        await until('a renewal has reached the master', async () => (await master.client.pttl(lockOf('k'))) > leftMs() + 500);
        expect(lock.isHeld()).toBe(true);
        await until('the loss', () => lock.signal.aborted);
        // At its end, and not before: counted from the attempt that asked for it.
        expect(performance.now() - startedAt).toBeGreaterThan(5_900);
        expect(lock.isHeld()).toBe(false);
        expect(lock.signal.reason).toBeInstanceOf(LockLostError);
      });
      await expect(call).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
      const details = troubles.map((trouble) => (trouble.type === 'storeUnavailable' ? trouble.error.detail : ''));
      // Of those one after the other, the first is reported: a machine that stalls may have made it late.
      expect(details).toContainEqual(
        expect.stringMatching(
          /^Lock "k": (0 of 1 replicas confirmed the renewal within (500|[1-4]\d\d) ms|too few replicas .*|.* no reply within \d+ ms)\. Make sure/,
        ),
      );
      // Its release may still be on its way.
      await until('that it is free', async () => (await storedLocks()).length === 0);
    },
  );

  testInWorld('that a stopped replica missed is tried again, and nothing is lost', async ({ replica, locks, troubles }) => {
    await locks.withLock('k', { ttl: 12_000 }, async (lock) => {
      const startedAt = performance.now();
      replica.pause();
      await until('a renewal that is missed', () => troubles.length > 0);
      expect(troubles[0]?.type).toBe('storeUnavailable');
      replica.resume();
      await sleep(12_500 - (performance.now() - startedAt));
      // One after that may have been late, where the machine stalls.
      await until('a renewal that is answered', () => troubles.at(-1)?.type === 'storeAnswered');
      expect(lock.isHeld()).toBe(true);
    });
    expect(troubles.filter(({ type }) => type !== 'storeUnavailable' && type !== 'storeAnswered')).toEqual([]);
    expect(troubles.at(-1)?.type).toBe('storeAnswered');
  });

  testInWorld('reports a lock that is gone at once, also where no replica answers', async ({ master, locks, breakLink }) => {
    const [kept, gone] = await Promise.all(['kept', 'gone'].map((key) => locks.acquire(key, { ttl: 9_000 })));
    breakLink();
    await master.client.del(lockOf('gone'));
    await until('the loss', () => gone?.isHeld() === false);
    expect(kept?.isHeld()).toBe(true);
    await Promise.all([kept?.release(), gone?.release()]);
  });

  testInWorld(
    'writes something even where the lease is long enough, or WAIT would answer for an earlier write',
    async ({ master, locks }) => {
      const lock = await locks.acquire('k', { ttl: 60_000 });
      const { owner = '', ...fields } = await master.client.hgetall(lockOf('k'));
      const hold = Object.keys(fields).find((field) => field.startsWith('hold:')) ?? '';
      const { source } = RENEW;
      const { parameters } = RENEW.command('k', [{ lock: lockOf('k'), owner, fence: lock.fence, hold, by: '', ttl: 100, lingers: 0 }]);
      const offset = async (): Promise<number> => Number(/master_repl_offset:(\d+)/.exec(await master.client.info('replication'))?.[1]);
      const written: number[] = [];
      for (let round = 0; round < 3; round++) {
        const before = await offset();
        expect(await master.client.call('EVAL', source, ...parameters)).toEqual([1]);
        written.push((await offset()) - before);
      }
      // A PING of the master to its replicas has 14 bytes, a PEXPIREAT more.
      expect(Math.min(...written)).toBeGreaterThan(40);
      expect(await master.client.pttl(lockOf('k'))).toBeGreaterThan(50_000);
      await lock.release();
    },
  );
});

describe('many at once', () => {
  const KEYS = Array.from({ length: 100 }, (_, index) => `key ${index}`);

  testAlone('do not wait for a slow replica one after the other', async ({ link, locks }) => {
    link.latencyMs = 100;
    // One after the other they would take 10 s and more.
    const tookMs = await quickest(8_000, async () => {
      const taking = Promise.all(KEYS.map((key) => locks.acquire(key, { ttl: 60_000, wait: 15_000 })));
      const takingMs = await timeOf(taking);
      await Promise.all((await taking).map((lock) => lock.release()));
      return takingMs;
    });
    expect(tookMs).toBeLessThan(8_000);
  });

  testAlone('all end within the time of two commands that the replica is away', async ({ replica, locks, storedLocks }) => {
    replica.pause();
    const failing = Promise.all(KEYS.map((key) => failureOf(locks.acquire(key, { wait: 0 }))));
    expect(await timeOf(failing)).toBeLessThan(2_000 + SLACK_MS);
    (await failing).forEach((error, index) =>
      expect(error.detail).toMatch(
        new RegExp(`^Lock "key ${index}": ((0 of 1|too few) replicas|.* no reply within|.* there is no connection)`),
      ),
    );
    await until('that all are undone', async () => (await storedLocks()).length === 0);
  });

  testAlone('do not hold up the renewals of what is held', async ({ link, locks, troubles }) => {
    const held = await Promise.all(KEYS.slice(0, 20).map((key) => locks.acquire(`held ${key}`, { ttl: 8_000 })));
    link.latencyMs = 60;
    let granted = 0;
    const endsAt = performance.now() + 5_000;
    await Promise.all(
      KEYS.map(async (key) => {
        while (performance.now() < endsAt) {
          await locks.withLock(key, { wait: 0 }, () => granted++).catch(() => undefined);
        }
      }),
    );
    expect(held.filter((lock) => !lock.isHeld())).toEqual([]);
    expect(troubles.filter(({ type }) => type === 'lost')).toEqual([]);
    expect(granted).toBeGreaterThan(50);
    await Promise.all(held.map((lock) => lock.release()));
  });
});

describe('a failover that loses the write', () => {
  testInWorld(
    'loses the lock where no replica was asked to confirm, and fences rise all the same',
    async ({ master, replica, openStore, serviceOf, breakLink, failOver }) => {
      const service = serviceOf(await openStore(master.url, 0));
      breakLink();
      const lock = await service.acquire('k', { ttl: 20_000 });
      await failOver();
      const other = await serviceOf(await openStore(replica.url, 0)).acquire('k', { wait: 15_000 });
      expect(other.fence).toBeGreaterThan(lock.fence);
      await other.release();
    },
  );

  testInWorld(
    'loses nothing that was granted where a replica has to confirm',
    async ({ replica, locks, openStore, serviceOf, breakLink, failOver }) => {
      breakLink();
      const call = failureOf(locks.acquire('k', { ttl: 20_000, wait: 0 }));
      await sleep(200);
      await failOver();
      expect(await call).toBeInstanceOf(LockStoreError);
      const other = await serviceOf(await openStore(replica.url, 0)).acquire('k', { wait: 15_000 });
      await other.release();
    },
  );

  testInWorld(
    'without the connections being cut leaves none of them at the deposed master, however late that is informed',
    async ({ master, replica, openStore, serviceOf, startProxy }) => {
      const proxy = await startProxy();
      const service = serviceOf(await openStore(proxy.url));
      await service.withLock('k', () => undefined);
      const way = await TcpProxy.start(replica.port);
      const second = await RedisServer.startReplica(replica.port);
      await replica.client.replicaof('NO', 'ONE');
      await master.client.call('REPLICAOF', '127.0.0.1', way.port);
      await replica.replicasOnline(2);
      way.latencyMs = 200;
      proxy.target = replica.port;
      // A grant of the new master is unknown to the old one when the connection that confirms asks there.
      expect(await service.withLock('new', { wait: 15_000 }, () => 'granted').finally(() => Promise.all([way.stop(), second.stop()]))).toBe(
        'granted',
      );
    },
  );
});

describe('the start', () => {
  testInWorld(
    'with too few replicas is a warning with the figures, and locks are granted as soon as they are there',
    async ({ master, warnings, openStore, serviceOf, breakLink, mendLink, storedLocks }) => {
      breakLink();
      let store = await openStore();
      const figures = /: 0 of 1 replicas confirmed the grant within (500|[1-4]\d\d) ms\..* Locked calls fail until then\.$/;
      await until('the figures', async () => {
        warnings.length = 0;
        store = await openStore();
        // A machine that stalls may know less.
        return figures.test(warnings.join());
      });
      expect(warnings).toHaveLength(1);
      await until('that the checks are undone', async () => (await master.client.keys('lock:lock:*')).length === 0);
      mendLink();
      expect(await serviceOf(store).withLock('k', { wait: 15_000 }, () => 1)).toBe(1);
    },
  );

  testInWorld('with more replicas wanted than there are says how many there are', async ({ master, warnings, openStore }) => {
    // A machine that stalls may know less.
    await until('the figures', async () => {
      warnings.length = 0;
      await openStore(master.url, 2);
      return /: 1 of 2 replicas confirmed the grant/.test(warnings.join());
    });
    expect(warnings).toHaveLength(1);
  });

  test.each([[-1], [1.5], [Number.NaN], [Infinity], ['1'], [null], [true]])('%p is no number of replicas', (minReplicas) => {
    const make = (): RedisLockStore => new RedisLockStore('redis://127.0.0.1', { minReplicas: minReplicas as never });
    expect(make).toThrow(LockConfigurationError);
    expect(make).toThrow(/RedisLockStore: minReplicas is .*\. Use a whole number from 0/);
  });

  test.each([[1], ['1'], [null]])('%p are no options', (options) => {
    expect(() => new RedisLockStore('redis://127.0.0.1', options as never)).toThrow(
      /the options are .*\. Pass an object with minReplicas, credentials, or nothing/,
    );
  });
});

describe('the cost', () => {
  async function costOf(
    { master, stores, serviceOf }: World,
    minReplicas: number | undefined,
  ): Promise<{ connections: number; evalsha: number; wait: number }> {
    // By their name: one of the world may be made anew meanwhile.
    const connections = async (): Promise<number> =>
      ((await master.client.client('LIST', 'TYPE', 'NORMAL')) as string).split(' name=counted ').length - 1;
    const open = async (): Promise<RedisLockStore> => {
      for (;;) {
        const warnings: string[] = [];
        const opened = new RedisLockStore({ port: master.port, connectionName: 'counted' }, { minReplicas });
        stores.push(opened);
        await opened.open({ prefix: 'lock', warn: (message) => warnings.push(message) });
        warnings.forEach((message) => noWarning(message));
        if (warnings.length === 0) {
          return opened;
        }
        // Where a stall ended its start, one of its connections was not made: the connection for renewals is made when
        // it first renews.
        await opened.close();
        await until('that its connections are gone', async () => (await connections()) === 0);
      }
    };
    const store = await open();
    const service = serviceOf(store);
    const costs: { connections: number; evalsha: number; wait: number }[] = [];
    for (let round = 0; round < 20; round++) {
      const first = await master.commandCounts();
      await service.withLock(`k${round}`, () => undefined);
      const last = await master.commandCounts();
      const count = (name: string): number => (last.get(name) ?? 0) - (first.get(name) ?? 0);
      costs.push({ connections: await connections(), evalsha: count('evalsha'), wait: count('wait') });
    }
    // Most of them: what a stall made late is repeated, and a connection that it broke is made anew.
    const most = (of: 'connections' | 'evalsha' | 'wait'): number =>
      costs.map((cost) => cost[of]).toSorted((one, other) => one - other)[10] ?? 0;
    await store.close();
    await until('that its connections are gone', async () => (await connections()) === 0);
    return { connections: most('connections'), evalsha: most('evalsha'), wait: most('wait') };
  }

  testInWorld('of a confirmed acquire and its release is three scripts and one WAIT, and two connections more', async (world) => {
    expect(await costOf(world, 1)).toEqual({ connections: 3, evalsha: 3, wait: 1 });
  });

  for (const minReplicas of [0, undefined]) {
    testInWorld(`without replicas (${minReplicas}) is what it was`, async (world) => {
      expect(await costOf(world, minReplicas)).toEqual({ connections: 1, evalsha: 2, wait: 0 });
    });
  }
});
