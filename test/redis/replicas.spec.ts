import { setTimeout as sleep } from 'node:timers/promises';
import { LockConfigurationError, LockLostError, LockStoreError } from '../../lib/core/errors';
import type { LockTrouble } from '../../lib/core/reporter';
import type { LockService } from '../../lib/nest/lock.service';
import { RedisLockStore } from '../../lib/stores/redis/redis-lock-store';
import { RENEW } from '../../lib/stores/redis/scripts';
import { untilWaiting } from '../support/hand-over';
import { makeLocks } from '../support/make-locks';
import { newHold } from '../support/new-hold';
import { RedisServer } from '../support/redis-server';
import { TcpProxy } from '../support/tcp-proxy';
import { until } from '../support/until';

let master: RedisServer;
let link: TcpProxy;
/** Between a store and the master, where a test wants one. */
let proxy: TcpProxy | undefined;
let replica: RedisServer;
let locks: LockService;
let stores: RedisLockStore[];
let troubles: LockTrouble[];
let warnings: string[];

beforeEach(async () => {
  stores = [];
  troubles = [];
  warnings = [];
  master = await RedisServer.start();
  link = await TcpProxy.start(master.port);
  replica = await RedisServer.startReplica(link.port);
  await master.replicasOnline(1);
  locks = serviceOf(await openStore());
});
afterEach(async () => {
  await Promise.all(stores.map((store) => store.close()));
  await Promise.all([link.stop(), proxy?.stop()]);
  proxy = undefined;
  await Promise.all([replica.stop(), master.stop()]);
});

async function openStore(url = master.url, minReplicas = 1): Promise<RedisLockStore> {
  const store = new RedisLockStore(url, { minReplicas });
  stores.push(store);
  await store.open({ prefix: 'lock', warn: (message) => warnings.push(message) });
  return store;
}

function serviceOf(store: RedisLockStore): LockService {
  return makeLocks(store, { onTrouble: (trouble) => troubles.push(trouble) });
}

/** The connection of the replica stays half open; what the master writes does not reach it. */
function breakLink(): void {
  link.mode = 'blackhole';
}

/** The replica connects anew, within a second. */
function mendLink(): void {
  link.mode = 'pass';
  link.cut();
}

async function failOver(): Promise<void> {
  await master.kill();
  await replica.client.replicaof('NO', 'ONE');
}

async function timeOf(call: Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await call;
  return performance.now() - startedAt;
}

const lockOf = (key: string): string => `lock:lock:{${key}}`;
const storedLocks = (): Promise<string[]> => master.client.keys('lock:lock:*');
const failureOf = (call: Promise<unknown>): Promise<LockStoreError> =>
  call.then(
    () => Promise.reject(new Error('granted')),
    (error) => error as LockStoreError,
  );

describe('a grant', () => {
  test('counts once a replica has it', async () => {
    link.latencyMs = 100;
    await locks.withLock('k', { wait: 0 }, async () => expect(await replica.client.exists(lockOf('k'))).toBe(1));
  });

  test('outlasts its master: nobody else gets the lock from the replica that takes over', async () => {
    link.latencyMs = 100;
    const lock = await locks.acquire('k', { ttl: 20_000, wait: 0 });
    await failOver();
    const others = serviceOf(await openStore(replica.url, 0));
    expect(await others.tryAcquire('k')).toBeNull();
    expect(await others.inspect('k')).toMatchObject({ fence: lock.fence });
  });

  test.each([
    ['whose link is broken', breakLink],
    ['that is stopped', () => replica.pause()],
    ['that is gone', () => replica.kill()],
  ])('that waits for a replica %s is undone within the time of a command, and the error has the figures', async (_, fail) => {
    await fail();
    const call = failureOf(locks.acquire('k', { ttl: 4_000, wait: 0 }));
    expect(await timeOf(call)).toBeLessThan(1_900);
    const error = await call;
    expect(error).toBeInstanceOf(LockStoreError);
    expect(error).toMatchObject({ key: 'k', unknown: false });
    expect(error.detail).toMatch(
      /^Lock "k": 0 of 1 replicas confirmed the grant within (500|[1-4]\d\d) ms\. Make sure that enough replicas are connected and keep up, or lower minReplicas of RedisLockStore\.$/,
    );
    expect(await storedLocks()).toEqual([]);
    expect(troubles.map(({ type }) => type)).toEqual(['storeUnavailable']);
  });

  test('is tried again while its caller waits, until the replica is back', async () => {
    breakLink();
    const acquiring = locks.acquire('k', { ttl: 2_000, wait: 20_000 });
    await until('the first attempt has failed', async () => troubles.length > 0, 10_000);
    mendLink();
    const lock = await acquiring;
    expect(troubles.map(({ type }) => type)).toEqual(['storeUnavailable', 'storeAnswered']);
    expect(await replica.client.hget(lockOf('k'), 'fence')).toBe(String(lock.fence));
    expect(await locks.inspect('k')).toMatchObject({ holds: 1, fence: lock.fence });
    await lock.release();
    expect(await storedLocks()).toEqual([]);
  });

  test('whose reply was lost is no more confirmed when it is asked for again', async () => {
    proxy = await TcpProxy.start(master.port);
    const service = serviceOf(await openStore(proxy.url));
    breakLink();
    proxy.mode = 'killOnReply';
    const call = failureOf(service.acquire('k', { ttl: 4_000, wait: 1_500 }));
    await until('the grant', async () => (await storedLocks()).length === 1);
    expect(await storedLocks()).toEqual([lockOf('k')]);
    // The proxy gets the reply after the grant can be seen.
    await sleep(100);
    proxy.mode = 'pass';
    expect((await call).detail).toMatch(/^Lock "k": 0 of 1 replicas/);
    expect(await storedLocks()).toEqual([]);
  });

  test('that could not be undone either fails within the time of a command, and is released in the background', async () => {
    proxy = await TcpProxy.start(master.port);
    const service = serviceOf(await openStore(proxy.url));
    await service.withLock('k', () => undefined);
    breakLink();
    const startedAt = performance.now();
    const call = failureOf(service.acquire('k', { ttl: 20_000, wait: 0 }));
    await sleep(250);
    proxy.mode = 'blackhole';
    expect(await call).toMatchObject({ key: 'k', unknown: true });
    // Core would stop waiting at 1,100 ms, and try again while the store still takes back what it did before.
    expect(performance.now() - startedAt).toBeLessThan(1_200);
    expect(await storedLocks()).toEqual([lockOf('k')]);
    proxy.mode = 'pass';
    await until('the lock is free', async () => (await storedLocks()).length === 0, 8_000);
  });

  test('is not taken back by what is left of an earlier attempt that was undone late', async () => {
    proxy = await TcpProxy.start(master.port);
    const service = serviceOf(await openStore(proxy.url));
    await service.withLock('k', () => undefined);
    breakLink();
    const acquiring = service.acquire('k', { ttl: 4_000, wait: 10_000 });
    await until('the first attempt', async () => (await storedLocks()).length === 1);
    await sleep(100);
    // The release of what no replica confirmed stays on its way.
    proxy.mode = 'withhold';
    await until('that the attempt failed', async () => troubles.length > 0);
    proxy.mode = 'pass';
    mendLink();
    const lock = await acquiring;
    await proxy.deliverFirst();
    expect(await locks.inspect('k')).toMatchObject({ fence: lock.fence, holds: 1 });
    expect(await locks.tryAcquire('k')).toBeNull();
    await lock.release();
    expect(await storedLocks()).toEqual([]);
  });

  test('is left to the next attempt at the hold where core has given up the one before', async () => {
    const store = stores[0] as RedisLockStore;
    breakLink();
    const hold = newHold('k', { ttlMs: 60_000, limitMs: 1_500 });
    const given = failureOf(store.acquire(hold));
    await until('the first attempt', async () => (await storedLocks()).length === 1);
    // As after a stall of the event loop: the time of core is over, and that of the store not yet.
    const again = store.acquire({ ...hold, limitMs: 30_000 });
    expect(await given).toMatchObject({ unknown: true });
    mendLink();
    const { fence } = (await again) as { fence: number };
    expect(await store.inspect('k')).toMatchObject({ fence, holds: 1 });
    expect(await store.release({ ...hold, fence })).toBe(true);
  });

  test('that was undone puts no blame on the subscription when its place in the queue is gone', async () => {
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
    const second = await others.acquire('k', { wait: 3_000 });
    await call;
    expect(await subscribers()).toEqual(before);
    await second.release();
  });

  test('of several keys leaves none of them where one is not confirmed', async () => {
    const other = await serviceOf(await openStore()).acquire('b');
    const call = failureOf(locks.acquire(['a', 'b'], { ttl: 4_000, wait: 1_500 }));
    // It has the first one, confirmed.
    await untilWaiting(locks, 'b');
    expect(await storedLocks()).toHaveLength(2);
    breakLink();
    await other.release();
    expect((await call).detail).toMatch(/^Lock "b": 0 of 1 replicas/);
    await until('that both are free', async () => (await storedLocks()).length === 0);
  });

  test('of several keys is on the replica with all of them', async () => {
    link.latencyMs = 50;
    const lock = await locks.acquire(['a', 'b', 'c']);
    expect(await replica.client.exists(lockOf('a'), lockOf('b'), lockOf('c'))).toBe(3);
    await lock.release();
  });

  test('by a ticket counts once a replica has it, and takes nothing from the holder where none has', async () => {
    link.latencyMs = 100;
    const lock = await locks.acquire('k', { ttl: 20_000 });
    const guests = serviceOf(await openStore());
    await guests.withLock('k', { ticket: lock.ticket, wait: 0 }, async () => {
      expect(await replica.client.hlen(lockOf('k'))).toBe(7);
    });
    breakLink();
    const error = await failureOf(guests.acquire('k', { ticket: lock.ticket, wait: 0 }));
    expect(error.detail).toMatch(/^Lock "k": 0 of 1 replicas/);
    expect(await locks.inspect('k')).toMatchObject({ holds: 1 });
    expect(lock.isHeld()).toBe(true);
    await lock.release();
  });
});

describe('an exchange within a process', () => {
  test('to a caller whose grant no replica has: the lock is free, and the release stands without an alarm', async () => {
    let next: Promise<LockStoreError> | undefined;
    const result = await locks.withLock('k', { ttl: 4_000 }, async () => {
      next = failureOf(locks.acquire('k', { ttl: 4_000, wait: 700, reentry: 'never' }));
      await sleep(400);
      breakLink();
      return 'result';
    });
    expect(result).toBe('result');
    expect((await next)?.detail).toMatch(/^Lock "k": 0 of 1 replicas/);
    expect(await storedLocks()).toEqual([]);
    expect(troubles.map(({ type }) => type)).toEqual(['storeUnavailable']);
    mendLink();
    expect(await locks.withLock('k', { wait: 5_000 }, () => 1)).toBe(1);
  });

  test('to a caller who still waits: it is granted when the replica is back', async () => {
    let next: Promise<number> | undefined;
    const before = await locks.withLock('k', { ttl: 4_000 }, async ({ fence }) => {
      next = locks.withLock('k', { ttl: 4_000, wait: 10_000, reentry: 'never' }, (lock) => lock.fence);
      await sleep(100);
      breakLink();
      setTimeout(mendLink, 800);
      return fence;
    });
    expect(await next).toBeGreaterThan(before);
    expect(await storedLocks()).toEqual([]);
  });
});

describe('a renewal', () => {
  test('that no replica has moves no deadline: the lease is lost at its end, though the master would keep it', async () => {
    const call = locks.withLock('k', { ttl: 2_000 }, async (lock) => {
      breakLink();
      await sleep(1_600);
      expect(lock.isHeld()).toBe(true);
      expect(await master.client.pttl(lockOf('k'))).toBeGreaterThan(800);
      await sleep(600);
      expect(lock.isHeld()).toBe(false);
      expect(lock.signal.reason).toBeInstanceOf(LockLostError);
    });
    await expect(call).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
    const [first] = troubles;
    expect(first?.type === 'storeUnavailable' && first.error.detail).toMatch(
      /^Lock "k": 0 of 1 replicas confirmed the renewal within (250|[12]\d\d) ms\. Make sure/,
    );
    expect(await storedLocks()).toEqual([]);
  });

  test('that a stopped replica missed is tried again, and nothing is lost', async () => {
    await locks.withLock('k', { ttl: 3_000 }, async (lock) => {
      replica.pause();
      await sleep(1_800);
      expect(troubles.map(({ type }) => type)).toEqual(['storeUnavailable']);
      replica.resume();
      await sleep(2_000);
      expect(lock.isHeld()).toBe(true);
    });
    expect(troubles.map(({ type }) => type)).toEqual(['storeUnavailable', 'storeAnswered']);
  });

  test('reports a lock that is gone at once, also where no replica answers', async () => {
    const [kept, gone] = await Promise.all(['kept', 'gone'].map((key) => locks.acquire(key, { ttl: 3_000 })));
    breakLink();
    await master.client.del(lockOf('gone'));
    await sleep(2_000);
    expect([kept?.isHeld(), gone?.isHeld()]).toEqual([true, false]);
    await Promise.all([kept?.release(), gone?.release()]);
  });

  test('writes something even where the lease is long enough, or WAIT would answer for an earlier write', async () => {
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
  });
});

describe('many at once', () => {
  const KEYS = Array.from({ length: 100 }, (_, index) => `key ${index}`);

  test('do not wait for a slow replica one after the other', async () => {
    link.latencyMs = 100;
    const taking = Promise.all(KEYS.map((key) => locks.acquire(key, { wait: 0 })));
    expect(await timeOf(taking)).toBeLessThan(2_000);
    await Promise.all((await taking).map((lock) => lock.release()));
  });

  test('all end within the time of two commands that the replica is away', async () => {
    replica.pause();
    const failing = Promise.all(KEYS.map((key) => failureOf(locks.acquire(key, { wait: 0 }))));
    expect(await timeOf(failing)).toBeLessThan(3_000);
    (await failing).forEach((error, index) => expect(error.detail).toMatch(new RegExp(`^Lock "key ${index}": (0 of 1|too few) replicas`)));
    expect(await storedLocks()).toEqual([]);
  });

  test('do not hold up the renewals of what is held', async () => {
    const held = await Promise.all(KEYS.slice(0, 20).map((key) => locks.acquire(`held ${key}`, { ttl: 1_600 })));
    link.latencyMs = 60;
    let granted = 0;
    const endsAt = performance.now() + 4_000;
    await Promise.all(
      KEYS.map(async (key) => {
        while (performance.now() < endsAt) {
          await locks.withLock(key, { wait: 0 }, () => granted++).catch(() => undefined);
        }
      }),
    );
    expect(held.filter((lock) => !lock.isHeld())).toEqual([]);
    expect(troubles.filter(({ type }) => type === 'lost')).toEqual([]);
    expect(granted).toBeGreaterThan(500);
    await Promise.all(held.map((lock) => lock.release()));
  });
});

describe('a failover that loses the write', () => {
  test('loses the lock where no replica was asked to confirm, and fences rise all the same', async () => {
    const service = serviceOf(await openStore(master.url, 0));
    breakLink();
    const lock = await service.acquire('k', { ttl: 20_000 });
    await failOver();
    const other = await serviceOf(await openStore(replica.url, 0)).acquire('k', { wait: 0 });
    expect(other.fence).toBeGreaterThan(lock.fence);
    await other.release();
  });

  test('loses nothing that was granted where a replica has to confirm', async () => {
    breakLink();
    const call = failureOf(locks.acquire('k', { ttl: 4_000, wait: 0 }));
    await sleep(200);
    await failOver();
    expect(await call).toBeInstanceOf(LockStoreError);
    const other = await serviceOf(await openStore(replica.url, 0)).acquire('k', { wait: 0 });
    await other.release();
  });

  test('without the connections being cut leaves none of them at the deposed master, however late that is informed', async () => {
    proxy = await TcpProxy.start(master.port);
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
    expect(await service.withLock('new', { wait: 5_000 }, () => 'granted').finally(() => Promise.all([way.stop(), second.stop()]))).toBe(
      'granted',
    );
  });
});

describe('the start', () => {
  test('with too few replicas is a warning with the figures, and locks are granted as soon as they are there', async () => {
    breakLink();
    const store = await openStore();
    expect(warnings).toEqual([
      expect.stringMatching(/: 0 of 1 replicas confirmed the grant within (500|[1-4]\d\d) ms\..* Locked calls fail until then\.$/),
    ]);
    expect(await storedLocks()).toEqual([]);
    mendLink();
    expect(await serviceOf(store).withLock('k', { wait: 5_000 }, () => 1)).toBe(1);
  });

  test('with more replicas wanted than there are says how many there are', async () => {
    await openStore(master.url, 2);
    expect(warnings).toEqual([expect.stringMatching(/: 1 of 2 replicas confirmed the grant/)]);
  });

  test.each([[-1], [1.5], [Number.NaN], [Infinity], ['1'], [null], [true]])('%p is no number of replicas', (minReplicas) => {
    const make = (): RedisLockStore => new RedisLockStore(master.url, { minReplicas: minReplicas as never });
    expect(make).toThrow(LockConfigurationError);
    expect(make).toThrow(/RedisLockStore: minReplicas is .*\. Use a whole number from 0/);
  });

  test.each([[1], ['1'], [null]])('%p are no options', (options) => {
    expect(() => new RedisLockStore(master.url, options as never)).toThrow(
      /the options are .*\. Pass an object with minReplicas, or nothing/,
    );
  });
});

describe('the cost', () => {
  async function costOf(minReplicas: number | undefined): Promise<{ connections: number; evalsha: number; wait: number }> {
    const connections = async (): Promise<number> =>
      ((await master.client.client('LIST', 'TYPE', 'NORMAL')) as string).trim().split('\n').length;
    const before = await connections();
    const store = new RedisLockStore(master.url, { minReplicas });
    stores.push(store);
    await store.open({ prefix: 'lock', warn: (message) => expect(message).toBe('') });
    const service = serviceOf(store);
    const first = await master.commandCounts();
    for (let round = 0; round < 20; round++) {
      await service.withLock(`k${round}`, () => undefined);
    }
    const last = await master.commandCounts();
    const count = (name: string): number => ((last.get(name) ?? 0) - (first.get(name) ?? 0)) / 20;
    return { connections: (await connections()) - before, evalsha: count('evalsha'), wait: count('wait') };
  }

  test('of a confirmed acquire and its release is three scripts and one WAIT, and two connections more', async () => {
    expect(await costOf(1)).toEqual({ connections: 3, evalsha: 3, wait: 1 });
  });

  test.each([[0], [undefined]])('without replicas (%p) is what it was', async (minReplicas) => {
    expect(await costOf(minReplicas)).toEqual({ connections: 1, evalsha: 2, wait: 0 });
  });
});
