import { Cluster } from 'ioredis';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LockHealth } from '../../lib/core/words/lock-health';
import type { HoldRecord } from '../../lib/core/seam/lock-store';
import type { LockTrouble } from '../../lib/core/words/lock-event';
import type { LockService } from '../../lib/nest/lock.service';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { slotTag } from '../../lib/redis/scripts/slot-tags';
import { healthWith } from '../support/health-with';
import { handOver, untilWaiting } from '../support/hand-over';
import { Load } from '../support/load';
import { makeLocks } from '../support/make-locks';
import { isOfSlowness } from '../support/no-warning';
import { noting } from '../support/noting';
import { RedisCluster } from '../support/redis-cluster';
import { clusterClient, type ClusterClientOptions, type ClusterClient } from '../support/redis-source';
import type { RedisServer } from '../support/redis-server';
import { TcpProxy } from '../support/tcp-proxy';
import { until } from '../support/until';
import { watchRejections } from '../support/watch-rejections';
import { newHold } from '../support/new-hold';

const RECHECK_MS = 300;

let cluster: RedisCluster;
let clients: ClusterClient[];
let stores: RedisLockStore[];
let proxies: TcpProxy[];
let warnings: string[];
let troubles: LockTrouble[];

beforeAll(async () => {
  cluster = await RedisCluster.start();
});
afterAll(() => cluster.stop());

beforeEach(() => {
  clients = [];
  stores = [];
  proxies = [];
  warnings = [];
  troubles = [];
});
afterEach(async () => {
  await Promise.all(stores.map((store) => store.close()));
  await cluster.recover();
  for (const client of clients) {
    // A store leaves the client that it was given alone.
    expect(client.isUntouched()).toBe(true);
    client.close();
  }
  await Promise.all(proxies.map((proxy) => proxy.stop()));
  expect(warnings).toEqual([]);
});

async function openLocks(options?: ClusterClientOptions): Promise<LockService> {
  const client = clusterClient(cluster.nodes, options);
  clients.push(client);
  const store = new RedisLockStore(client.source);
  await store.open({ prefix: 'lock', warn: (message) => isOfSlowness(message) || warnings.push(message) });
  stores.push(store);
  return makeLocks(store, { onTrouble: noting(troubles) });
}

const lockOf = (key: string): string => `lock:lock:{${key}}`;
const fenceOf = (key: string): string => `lock:fence:{${slotTag(key)}}`;

async function setFence(key: string, fence: string): Promise<void> {
  await (await cluster.masterOf(key)).client.set(fenceOf(key), fence);
}

/** A few keys for each master. */
async function keysOfEachShard(count: number): Promise<Map<RedisServer, string[]>> {
  const shards = new Map((await cluster.masters()).map((master) => [master, [] as string[]]));
  for (let at = 0; [...shards.values()].some((keys) => keys.length < count); at++) {
    const keys = shards.get(await cluster.masterOf(`key-${at}`));
    if (keys && keys.length < count) {
      keys.push(`key-${at}`);
    }
  }
  return shards;
}

async function another(than: RedisServer): Promise<RedisServer> {
  return (await cluster.masters()).find((master) => master !== than) as RedisServer;
}

/** A proxy for each node, and what a client needs to meet the nodes through them. */
async function proxied(): Promise<Record<string, { host: string; port: number }>> {
  const ways = await Promise.all(cluster.nodes.map(async ({ port }) => ({ port, proxy: await TcpProxy.start(port) })));
  proxies = ways.map(({ proxy }) => proxy);
  return Object.fromEntries(
    ways.map(({ port, proxy }) => [`127.0.0.1:${port}`, { host: '127.0.0.1', port: Number(new URL(proxy.url).port) }]),
  );
}

/** The channels that have a subscriber, and the node where it has subscribed. */
async function subscriptions(): Promise<Map<string, RedisServer>> {
  const found = new Map<string, RedisServer>();
  for (const server of cluster.nodes.filter((node) => node.running)) {
    for (const channel of (await server.client.pubsub('CHANNELS', 'lock:wake:*')) as string[]) {
      found.set(channel, server);
    }
  }
  return found;
}

/** How often the nodes answered with each error. */
async function errorCounts(): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const { client } of cluster.nodes) {
    for (const [, code = '', count] of (await client.info('errorstats')).matchAll(/^errorstat_(\w+):count=(\d+)/gm)) {
      counts.set(code, (counts.get(code) ?? 0) + Number(count));
    }
  }
  return counts;
}

test('each master answers for the health of a cluster, which names no node', async () => {
  const locks = await openLocks();
  let health: LockHealth | undefined;
  await until('that locks are up', async () => {
    health = await locks.operations.health();
    return health.status === 'up';
  });
  // A fact that the start could not ask in time is not known.
  expect({ evicts: false, ...health }).toEqual({
    status: 'up',
    reasons: [],
    reachable: true,
    server: 'Redis',
    latencyMs: expect.any(Number),
    hearsTurns: true,
    clockSkewMs: expect.any(Number),
    members: [{ reachable: true }, { reachable: true }, { reachable: true }],
    heldHere: 0,
    waitingHere: 0,
    evicts: false,
  });
});

test('a master that is full degrades a cluster, without a call, until that ends: the keys of the others have locks', async () => {
  const locks = await openLocks();
  await healthWith(locks);
  const shards = await keysOfEachShard(1);
  const [full, sound] = [...shards.keys()] as [RedisServer, RedisServer];
  await full.client.config('SET', 'maxmemory', 1);
  const { members, status } = await healthWith(locks, 'membersAway');
  expect({ status, members: members?.toSorted((a, b) => Number(a.refuses !== undefined) - Number(b.refuses !== undefined)) }).toEqual({
    status: 'degraded',
    members: [{ reachable: true }, { reachable: true }, { reachable: true, refuses: 'full' }],
  });
  await expect(locks.acquire(shards.get(full)?.[0] as string, { wait: 0 })).rejects.toMatchObject({ code: 'LOCK_STORE' });
  await locks.withLock(shards.get(sound)?.[0] as string, () => undefined);

  await Promise.all([...shards.keys()].map(({ client }) => client.config('SET', 'maxmemory', 1)));
  expect(await healthWith(locks, 'full', 'membersAway')).toMatchObject({ refuses: 'full' });
  await until('down', async () => (await locks.operations.health({ downAfter: 300 })).status === 'down');
  await Promise.all([...shards.keys()].map(({ client }) => client.config('SET', 'maxmemory', 0)));
  expect(await healthWith(locks)).toMatchObject({ status: 'up' });
});

test('a master that became a replica sends its callers on: nothing is wrong with it', async () => {
  const locks = await openLocks();
  await healthWith(locks);
  const shards = await keysOfEachShard(1);
  const [[master, [key]]] = [...shards] as [[RedisServer, [string]]];
  const [replica] = (await cluster.replicasOf(master)) as [RedisServer];
  await replica.client.call('CLUSTER', 'FAILOVER');
  await cluster.promoted([replica]);
  expect((await locks.operations.health()).members).not.toContainEqual(expect.objectContaining({ refuses: expect.anything() }));
  await locks.withLock(key, () => undefined);
  expect(await healthWith(locks)).toMatchObject({ status: 'up' });
});

test('every script stays in one slot, whatever the key is called', async () => {
  const locks = await openLocks();
  const keys = Array.from({ length: 100 }, (_, index) => `key {${index}}`);
  await Promise.all(
    keys.map((key) =>
      locks.withLock(key, { ttl: 1_500 }, async (lock) => {
        await sleep(800);
        expect(lock.isHeld()).toBe(true);
        await locks.withLock(key, { ticket: lock.makeTicket() }, () => undefined);
      }),
    ),
  );
  const all = await locks.acquire(keys, { ttl: 60_000 });
  await expect(locks.tryAcquire(keys[7] as string)).resolves.toBeNull();
  expect(await locks.operations.forceRelease(keys[7] as string, { fence: all.fenceOf(keys[7] as string) })).toBe(true);
  await until('the forced release', () => all.signal.aborted);
  expect(all.signal.reason).toMatchObject({ reason: 'forced' });
  await all.release();
  await sleep(1_000);
  const left = (await Promise.all((await cluster.masters()).map(({ client }) => client.keys('lock:lock:*')))).flat();
  expect(left).toEqual([]);
});

test('locks of all shards are renewed', async () => {
  const locks = await openLocks();
  const keys = [...(await keysOfEachShard(30)).values()].flat();
  const leases = await Promise.all(keys.map((key) => locks.acquire(key, { ttl: 1_800 })));
  await sleep(4_000);
  expect(leases.filter((lease) => lease.isHeld())).toHaveLength(90);
  await Promise.all(leases.map((lease) => lease.release()));
});

test('a renewal of locks of several shards shows which of them did not answer', async () => {
  await openLocks();
  const store = stores[0] as RedisLockStore;
  const shards = await keysOfEachShard(1);
  const holds = [];
  for (const [key] of shards.values() as Iterable<[string]>) {
    const hold = newHold(key, { owner: 'owner', id: 'hold', ttlMs: 2_000, limitMs: 500 });
    holds.push({ ...hold, ...(await store.acquire(hold)) } as HoldRecord);
  }
  const [stopped] = [...shards.keys()] as [RedisServer];
  stopped.pause();
  expect(await store.renew(holds)).toEqual([undefined, true, true]);
  stopped.resume();
});

test("a shard that does not answer takes no other's locks along", async () => {
  const locks = await openLocks();
  const shards = await keysOfEachShard(10);
  const [stopped, ...others] = [...shards.keys()] as [RedisServer, ...RedisServer[]];
  const replicas = await cluster.replicasOf(stopped);
  // It shall come back as it was.
  await Promise.all(replicas.map(({ client }) => client.config('SET', 'cluster-replica-no-failover', 'yes')));
  const holdAll = (server: RedisServer) => Promise.all((shards.get(server) as string[]).map((key) => locks.acquire(key, { ttl: 1_800 })));
  const its = await holdAll(stopped);
  const rest = (await Promise.all(others.map(holdAll))).flat();
  stopped.pause();
  await sleep(2_600);
  expect(its.filter((lease) => lease.isHeld())).toEqual([]);
  expect(rest.filter((lease) => lease.isHeld())).toHaveLength(20);
  stopped.resume();
  await Promise.all([...its, ...rest].map((lease) => lease.release()));
  await Promise.all(replicas.map(({ client }) => client.config('SET', 'cluster-replica-no-failover', 'no')));
});

describe('fences', () => {
  test('are counted for each slot', async () => {
    const locks = await openLocks();
    const [one = '', other = ''] = [...(await keysOfEachShard(1)).values()].flat();
    const alike = Array.from({ length: 100_000 }, (_, at) => `alike-${at}`).find((key) => slotTag(key) === slotTag(one)) as string;
    await setFence(one, '8000000000000000');
    expect((await locks.acquire(one)).fence).toBe(8_000_000_000_000_001);
    expect((await locks.acquire(alike)).fence).toBe(8_000_000_000_000_002);
    const { fence } = await locks.acquire(other);
    expect(fence).toBeLessThan(8_000_000_000_000_000);
    expect(await (await cluster.masterOf(other)).client.get(fenceOf(other))).toBe(String(fence));
  });

  test('rise over a migration of their slot', async () => {
    const locks = await openLocks();
    const key = 'migrated';
    // Ahead of the clock, from which a counter that was lost would start again.
    await setFence(key, '8000000000000000');
    const { fence } = await locks.acquire(key, { ttl: 300, renew: false });
    const from = await cluster.masterOf(lockOf(key));
    await cluster.reshard(key, await another(from));
    expect(await cluster.masterOf(lockOf(key))).not.toBe(from);
    expect((await locks.acquire(key)).fence).toBe(fence + 1);
  });
});

describe('resharding', () => {
  test('is noticed by nobody: a slot moves while its lock is held, waited for and taken over and over', async () => {
    const services = [await openLocks(), await openLocks(), await openLocks()];
    const load = new Load(services, ['k'], { ttl: 1_500, wait: 10_000 });
    const before = await errorCounts();
    for (let round = 0; round < 3; round++) {
      await sleep(300);
      await cluster.reshard('k', await another(await cluster.masterOf('k')), () => sleep(250));
    }
    await load.turnRound();
    await load.stop();
    const after = await errorCounts();
    for (const code of ['MOVED', 'ASK', 'TRYAGAIN']) {
      expect([code, after.get(code) ?? 0]).not.toEqual([code, before.get(code) ?? 0]);
    }
    expect(load.failures).toEqual([]);
    expect(load).toMatchObject({ overlaps: 0, disorders: 0, losses: 0 });
  });

  test('ends no process where the connection to the new node is lost', async () => {
    const reasons: unknown[] = [];
    const unwatch = watchRejections((reason) => reasons.push(reason));
    const natMap = await proxied();
    const locks = await openLocks({ natMap });
    const to = await another(await cluster.masterOf('k'));
    const way = proxies[cluster.nodes.indexOf(to)] as TcpProxy;
    await Promise.all([...(await keysOfEachShard(3)).values()].flat().map((key) => locks.withLock(key, () => undefined)));
    const outcomes: unknown[] = [];
    await cluster.reshard('k', to, async () => {
      // Nobody awaits the ASKING that ioredis sends before a redirected command.
      way.mode = 'killOnReply';
      outcomes.push(await locks.acquire('k', { ttl: 8_000, wait: 500 }).catch(({ code }: { code: string }) => code));
      way.mode = 'pass';
    });
    await sleep(50);
    unwatch();
    expect(outcomes).toContain('LOCK_STORE');
    expect(reasons).toEqual([]);
    expect(await locks.withLock('k', { wait: 10_000 }, () => 'had')).toBe('had');
  });

  test('takes a renewal to where the lock is, also before the slot is there, and later commands straight to its new owner', async () => {
    await openLocks();
    const store = stores[0] as RedisLockStore;
    const hold = newHold('k', { ttlMs: 60_000 });
    let fence: number | undefined;
    // A call of the test before may have left the lock for as long as its ttl.
    await until('the grant', async () => (fence = (await store.acquire(hold)).fence) !== undefined);
    const held = { ...hold, fence } as unknown as HoldRecord;
    const renewals: unknown[] = [];
    await cluster.reshard('k', await another(await cluster.masterOf('k')), async () => {
      renewals.push(...(await store.renew([held])));
    });
    // Once when the first of its keys had moved, and once when all had.
    expect(renewals.at(-1)).toBe(true);
    await store.renew([held]);
    const before = (await errorCounts()).get('MOVED');
    for (let at = 0; at < 5; at++) {
      expect(await store.renew([held])).toEqual([true]);
    }
    expect((await errorCounts()).get('MOVED')).toBe(before);
    await store.release(held);
  });

  test('keeps a lock that is held: it is renewed on either side, and released once', async () => {
    const locks = await openLocks();
    const other = await openLocks();
    let next: Promise<number> | undefined;
    const fence = await locks.withLock('k', { ttl: 1_500 }, async (lock) => {
      next = other.withLock('k', { wait: 15_000 }, (taken) => taken.fence);
      await cluster.reshard('k', await another(await cluster.masterOf('k')), () => sleep(750));
      await sleep(1_000);
      expect(lock.isHeld()).toBe(true);
      return lock.fence;
    });
    expect(await next).toBeGreaterThan(fence);
  });
});

describe('a waiter', () => {
  test('is notified of its turn by a publisher that is connected to another node', async () => {
    const [holder, waiter] = [await openLocks(), await openLocks()];
    const keys = [...(await keysOfEachShard(3)).values()].flat();
    const times: number[] = [];
    for (const key of keys) {
      const held = await holder.acquire(key);
      const served = waiter.withLock(key, () => performance.now());
      await sleep(50);
      const releasedAt = performance.now();
      await held.release();
      times.push((await served) - releasedAt);
    }
    // A waiter that is not notified asks every 300 ms: 250 ms after the release.
    expect(times.filter((time) => time < RECHECK_MS / 2).length).toBeGreaterThan(keys.length / 2);
  });
});

test('a holder is notified of a forced release that was made at another node', async () => {
  const [holder, operator] = [await openLocks(), await openLocks()];
  for (const [key] of (await keysOfEachShard(1)).values() as Iterable<[string]>) {
    const { fence, signal } = await holder.acquire(key, { ttl: 10_000 });
    expect(await operator.operations.forceRelease(key, { fence })).toBe(true);
    // The renewal, which would find out as well, is 3 s away.
    await until('word of the forced release', () => signal.aborted, 1_000);
    expect(signal.reason).toMatchObject({ reason: 'forced' });
  }
});

describe('a failover', () => {
  test('is retried through by calls that may wait; fences rise, and other shards notice nothing', async () => {
    const services = [await openLocks(), await openLocks(), await openLocks()];
    const shards = await keysOfEachShard(3);
    const [failing, ...others] = [...shards.keys()] as [RedisServer, ...RedisServer[]];
    const of = (servers: RedisServer[]) => servers.flatMap((server) => shards.get(server) as string[]);
    const load = new Load(services, of([failing]), { ttl: 2_000, wait: 15_000 });
    const rest = new Load(services, of(others), { ttl: 2_000, wait: 15_000 });
    await sleep(500);
    // A write that the replica does not get any more is lost with the master.
    const [replica] = (await cluster.replicasOf(failing)) as [RedisServer];
    replica.pause();
    await failing.client.call('CLIENT', 'KILL', 'TYPE', 'replica');
    await load.turnRound();
    await failing.kill();
    const startedAt = performance.now();
    replica.resume();
    await load.turnRound();
    console.log(`the locks of the shard were granted again ${Math.round(performance.now() - startedAt)} ms after its master was killed`);
    await cluster.promoted([replica]);
    await sleep(500);
    await Promise.all([load.stop(), rest.stop()]);
    expect([...load.failures, ...rest.failures]).toEqual([]);
    expect(load.disorders).toBe(0);
    expect(rest).toMatchObject({ overlaps: 0, disorders: 0, losses: 0 });
    expect(load.longestMs).toBeGreaterThan(1_000);
    expect(rest.longestMs).toBeLessThan(1_000);
  });
});

describe('a shard that is gone', () => {
  test('fails its locks, and no others, naming the cause in time; it serves again when it is back', async () => {
    const locks = await openLocks();
    const shards = await keysOfEachShard(1);
    const [gone, alive] = [...shards.keys()] as [RedisServer, RedisServer];
    const [its, others] = [shards.get(gone)?.[0] as string, shards.get(alive)?.[0] as string];
    const replicas = await cluster.replicasOf(gone);
    const refused = new RegExp(`connect ECONNREFUSED 127.0.0.1:(${[gone, ...replicas].map(({ port }) => port).join('|')})\\b`);
    await locks.withLock(its, () => undefined);
    await Promise.all([...replicas, gone].map((server) => server.kill()));
    const refusalOf = (ttl: number, wait: number): Promise<unknown> => locks.acquire(its, { ttl, wait }).catch((error: unknown) => error);
    // The first calls may find a connection that is just being lost.
    await until('the cause', async () => refused.test(((await refusalOf(1_000, 0)) as { detail?: string }).detail ?? ''));
    for (const [ttl, wait] of [
      [1_000, 0],
      [10_000, 0],
      [10_000, 2_000],
    ] as const) {
      const calledAt = performance.now();
      const refusal = await refusalOf(ttl, wait);
      const tookMs = performance.now() - calledAt;
      // Any node of the shard may have been the last that was asked for.
      expect(refusal).toMatchObject({ code: 'LOCK_STORE', detail: expect.stringMatching(refused) });
      expect(tookMs).toBeGreaterThan(wait - 50);
      expect(tookMs).toBeLessThan(wait + ttl / 4 + 300);
      // The store counts as a whole: once it is away, a call on a shard that is well may wait for up to 500 ms.
      await locks.withLock(others, { wait: 1_000 }, () => undefined);
    }
    expect(await healthWith(locks, 'membersAway')).toMatchObject({ status: 'degraded', reachable: true });
    const waiting = locks.withLock(its, { wait: 15_000 }, () => 'served');
    await gone.start();
    expect(await waiting).toBe('served');
    await healthWith(locks);
  });

  test('is named as such where no node claims its slot', async () => {
    const locks = await openLocks();
    const slot = await cluster.slotOf('k');
    const owner = await cluster.masterOf('k');
    await Promise.all(cluster.nodes.map(({ client }) => client.call('CLUSTER', 'DELSLOTS', slot)));
    const refusals: unknown[] = [];
    for (const [ttl, wait] of [
      [4_000, 0],
      [10_000, 1_000],
    ] as const) {
      refusals.push(await locks.acquire('k', { ttl, wait }).catch((error: unknown) => error));
    }
    const waiting = locks.withLock('k', { wait: 10_000 }, () => 'served');
    await owner.client.call('CLUSTER', 'ADDSLOTS', slot);
    const down = expect.stringContaining('CLUSTERDOWN Hash slot not served') as string;
    expect(refusals).toMatchObject([
      { code: 'LOCK_STORE', detail: down },
      { code: 'LOCK_STORE', detail: down },
    ]);
    expect(await waiting).toBe('served');
  });
});

describe('a connection to a node', () => {
  test('may take a while: calls that come meanwhile wait for it', async () => {
    const natMap = await proxied();
    const locks = await openLocks({ natMap });
    const keys = [...(await keysOfEachShard(5)).values()].flat();
    for (const proxy of proxies) {
      proxy.latencyMs = 100;
    }
    const calledAt = performance.now();
    await Promise.all(keys.map((key) => locks.withLock(key, { wait: 0 }, () => undefined)));
    expect(performance.now() - calledAt).toBeLessThan(800);
    expect(troubles).toEqual([]);
  });

  test('that is cut before a reply leaves the outcome unknown, also where the command is refused when it is sent again', async () => {
    const natMap = await proxied();
    const locks = await openLocks({ natMap });
    await locks.withLock('k', () => undefined);
    const { client } = await cluster.masterOf('k');
    for (const proxy of proxies) {
      proxy.ambush = 'evalsha';
      proxy.onAmbush = () => {
        proxies.forEach((each) => (each.ambush = undefined));
        // Before the client is connected again.
        void client.config('SET', 'min-replicas-to-write', 9);
      };
    }
    try {
      await expect(locks.acquire('k', { wait: 0, ttl: '60s' })).rejects.toMatchObject({ code: 'LOCK_STORE', unknown: true });
      expect(await client.exists(lockOf('k'))).toBe(1);
    } finally {
      await client.config('SET', 'min-replicas-to-write', 0);
    }
    await until('that the lock is released', async () => (await client.exists(lockOf('k'))) === 0, 15_000);
  });

  test('that was refused for a while is not what a later failure is put down to', async () => {
    const user = (...rules: string[]) => Promise.all(cluster.nodes.map(({ client }) => client.call('ACL', 'SETUSER', 'locker', ...rules)));
    await user('on', '>known', '~*', '&*', '+@all');
    const natMap = await proxied();
    const locks = await openLocks({ natMap, redisOptions: { username: 'locker', password: 'known' } });
    await user('resetpass', '>another');
    proxies.forEach((proxy) => proxy.cut());
    await expect(locks.acquire('k', { wait: 200 })).rejects.toMatchObject({ detail: expect.stringContaining('WRONGPASS') as string });
    await user('>known');
    await sleep(2_500);
    await locks.withLock('k', { wait: 5_000 }, () => undefined);
    for (const proxy of proxies) {
      proxy.ambush = 'evalsha';
    }
    const waiting = locks.withLock('k', { wait: 15_000 }, () => 'served');
    const refusal = locks.acquire('other', { wait: 500 });
    await expect(refusal).rejects.toMatchObject({
      code: 'LOCK_STORE',
      detail: expect.stringMatching(/the connection was (closed|lost)/) as string,
    });
    for (const proxy of proxies) {
      proxy.ambush = undefined;
    }
    expect(await waiting).toBe('served');
  });
});

describe('a subscription', () => {
  test('moves to another node when its own is gone', async () => {
    const waiter = await openLocks();
    const [[channel, subscribed]] = [...(await subscriptions())] as [[string, RedisServer]];
    const holder = await openLocks();
    await subscribed.kill();
    await until('another subscription', async () => (await subscriptions()).has(channel));
    // Real time: the shortest of three hand-overs; without messages each of them takes the whole pause.
    expect(await handOver(holder, waiter)).toBeLessThan(RECHECK_MS / 2);
  });

  test('that is half open costs a re-check, and is made anew by its pings', async () => {
    const natMap = await proxied();
    const holder = await openLocks();
    const waiter = await openLocks({ natMap });
    for (const proxy of proxies) {
      proxy.mode = 'muteSubscribers';
    }
    const held = await holder.acquire('k');
    const served = waiter.withLock('k', () => performance.now());
    await untilWaiting(holder, 'k');
    const releasedAt = performance.now();
    await held.release();
    expect((await served) - releasedAt).toBeLessThan(RECHECK_MS + 200);
    for (const proxy of proxies) {
      proxy.mode = 'pass';
    }
    await sleep(11_000);
    // Real time: the shortest of three hand-overs; without messages each of them takes the whole pause.
    expect(await handOver(holder, waiter)).toBeLessThan(RECHECK_MS / 2);
  });
});

test('a process whose subscriber looks a name up for long hears of turns then', async () => {
  const { port } = cluster.nodes[0] as RedisServer;
  // Longer than it takes until a subscriber counts as half open.
  const dnsLookup = (_name: string, found: (error: null, address: string) => void): void =>
    void setTimeout(found, 12_000, null, '127.0.0.1');
  const client = new Cluster([{ host: 'localhost', port }], { lazyConnect: true, dnsLookup });
  client.on('error', () => undefined);
  const store = new RedisLockStore(client);
  stores.push(store);
  await store.open({ prefix: 'lock', warn: () => undefined });
  const hears = (): Promise<boolean> => store.health().then(({ hearsTurns }) => hearsTurns === true).catch(() => false); // prettier-ignore
  await until('that it hears', hears, 40_000);
  client.disconnect();
});
