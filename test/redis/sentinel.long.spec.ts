import type { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis-5';
import { Redis as Valkey } from 'iovalkey';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { mkdtempSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LockTrouble } from '../../lib/core/words/lock-event';
import type { LockService } from '../../lib/nest/lock.service';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { handOver } from '../support/hand-over';
import { Load } from '../support/load';
import { makeLocks } from '../support/make-locks';
import { noting } from '../support/noting';
import { opened } from '../support/opened';
import { SentinelGroup } from '../support/redis-sentinel';
import { RedisServer } from '../support/redis-server';
import { TcpProxy } from '../support/tcp-proxy';
import { until } from '../support/until';

const RECHECK_MS = 300;

let group: SentinelGroup;
let clients: Redis[];
let warnings: string[];
let troubles: LockTrouble[];

beforeAll(async () => {
  group = await SentinelGroup.start();
});
afterAll(() => group.stop());

beforeEach(() => {
  clients = [];
  warnings = [];
  troubles = [];
});
afterEach(async () => {
  await group.recover();
  for (const client of clients) {
    // A store leaves the client that it was given alone.
    expect(client.status).not.toBe('end');
    client.disconnect();
  }
  expect(warnings).toEqual([]);
});

async function openLocks(...how: Parameters<SentinelGroup['connect']>): Promise<LockService> {
  const client = group.connect(...how);
  clients.push(client);
  return makeLocks(await opened(new RedisLockStore(client), (message) => warnings.push(message)), { onTrouble: noting(troubles) });
}

const lockOf = (key: string): string => `lock:lock:{${key}}`;

/** Waits until the replicas have all that the master has. */
async function replicated(): Promise<void> {
  const master = await group.master();
  const replicas = await group.replicas();
  // WAIT asks them. What INFO says of them is a second old, and the sentinels write a few times a second.
  await until('that the replicas have everything', async () => {
    await master.client.set('written', 1);
    return (await master.client.wait(replicas.length, 1_000)) === replicas.length;
  });
}

test('a Sentinel client is accepted', async () => {
  const locks = await openLocks();
  const master = await group.master();
  await locks.withLock('k', async () => expect(await master.client.exists(lockOf('k'))).toBe(1));
});

test.each([1, 2])(
  'a store that is closed while its connection %i to the master comes to stand leaves no listener at the sentinels',
  async (nth) => {
    const { port } = await group.master();
    const store = new RedisLockStore(group.connect({ lazyConnect: true }));
    let connected = 0;
    const watch = (message: unknown): void => {
      const { socket } = message as { socket: Socket };
      // Before ioredis knows of it.
      socket.once('connect', () => {
        if (socket.remotePort === port && ++connected === nth) {
          void store.close();
        }
      });
    };
    subscribe('net.client.socket', watch);
    await store.open({ prefix: 'lock', warn: () => undefined }).catch(() => undefined);
    await until('the connection', () => connected >= nth);
    unsubscribe('net.client.socket', watch);
    // As long as it takes to subscribe.
    await sleep(500);
    expect(await group.listeners()).toBe(0);
  },
);

describe('a failover', () => {
  test('is retried through by calls that may wait, and fences rise though the last grants were lost', async () => {
    const services = [await openLocks(), await openLocks({}, Redis5), await openLocks({}, Valkey)];
    const load = new Load(services, ['a', 'b', 'c'], { ttl: 2_000, wait: 15_000 });
    await sleep(500);
    const replicas = await group.replicas();
    for (const replica of replicas) {
      replica.pause();
    }
    const master = await group.master();
    await master.client.call('CLIENT', 'KILL', 'TYPE', 'replica');
    await load.turnRound();
    await master.kill();
    const startedAt = performance.now();
    for (const replica of replicas) {
      replica.resume();
    }
    await load.turnRound();
    console.log(`locks were granted again ${Math.round(performance.now() - startedAt)} ms after the master was killed`);
    await sleep(500);
    await load.stop();
    expect(load.longestMs).toBeGreaterThan(900);
    expect(load.failures).toEqual([]);
    expect(load.disorders).toBe(0);
  });

  test('takes the store along at once, commands and subscription, though the deposed master still answers', async () => {
    const [holder, waiter] = [await openLocks(), await openLocks()];
    await replicated();
    const deposed = await group.master();
    const master = await group.failover('demote');
    const startedAt = performance.now();
    await until('the first grant of the new master', () =>
      holder.withLock('k', { wait: 5_000 }, async ({ fence }) => (await master.client.hget(lockOf('k'), 'fence')) === String(fence)),
    );
    expect(performance.now() - startedAt).toBeLessThan(2_000);
    // Real time: the shortest of three hand-overs; without messages each of them takes the whole pause.
    expect(await handOver(holder, waiter)).toBeLessThan(RECHECK_MS / 2);
    // Sentinel has not notified it yet.
    expect(await deposed.client.info('replication')).toContain('role:master');
  });

  test('from a master that is stopped leaves no two that trust a lease; what it answers later is no grant', async () => {
    const [holder, waiter] = [await openLocks(), await openLocks()];
    // A lease that ends before the failover does.
    const held = await holder.acquire('k', { ttl: 900 });
    await replicated();
    const deposed = await group.master();
    deposed.pause();
    const late = holder.acquire('late', { wait: 0 }).catch((error: unknown) => error);
    const next = waiter.withLock('k', { wait: 20_000 }, ({ fence }) => ({ fence, stillHeld: held.isHeld() }));
    expect(await late).toMatchObject({ code: 'LOCK_STORE', unknown: true });
    const { fence, stillHeld } = await next;
    expect(stillHeld).toBe(false);
    expect(fence).toBeGreaterThan(held.fence);
    const master = await group.waitForNewMaster(deposed);
    // Real time: the shortest of three hand-overs; without messages each of them takes the whole pause.
    expect(await handOver(holder, waiter)).toBeLessThan(RECHECK_MS / 2);
    deposed.resume();
    // It carries out what it was sent before, and answers nobody who would believe it.
    await sleep(500);
    expect(held.isHeld()).toBe(false);
    expect(await master.client.exists(lockOf('late'))).toBe(0);
    expect(await holder.withLock('late', () => 'had')).toBe('had');
    await held.release();
  });

  test('is found although the sentinel that is asked first is stopped', async () => {
    const locks = await openLocks();
    group.pauseSentinel();
    await group.failover('kill');
    expect(await locks.withLock('k', { wait: 10_000 }, () => 'served')).toBe('served');
  });

  test('of which the news comes while the store asks for the master does not end its connection', async () => {
    const way = await TcpProxy.start(group.sentinelPorts[0] as number);
    const locks = await openLocks({ sentinels: [{ host: '127.0.0.1', port: Number(new URL(way.url).port) }] });
    way.latencyMs = 350;
    await group.failover('kill');
    await sleep(1_500);
    way.latencyMs = 0;
    expect(await locks.withLock('k', { wait: 10_000 }, () => 'served')).toBe('served');
    await way.stop();
  });
});

test('no sentinel that answers, and no retry in the options of the client, end neither commands nor subscription for good', async () => {
  const way = await TcpProxy.start(group.sentinelPorts[0] as number);
  const sentinels = [{ host: '127.0.0.1', port: way.port }];
  const options = { sentinels, updateSentinels: false, sentinelRetryStrategy: () => null, lazyConnect: true };
  const [holder, waiter] = [await openLocks(options), await openLocks(options)];
  // Real time: the shortest of three hand-overs; without messages each of them takes the whole pause.
  expect(await handOver(holder, waiter)).toBeLessThan(RECHECK_MS / 2);
  way.mode = 'refuse';
  const master = await group.master();
  await master.client.call('CLIENT', 'KILL', 'TYPE', 'normal');
  await master.client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
  await sleep(1_000);
  way.mode = 'pass';
  await sleep(1_500);
  // Real time: the shortest of three hand-overs; without messages each of them takes the whole pause.
  expect(await handOver(holder, waiter)).toBeLessThan(RECHECK_MS / 2);
  await way.stop();
});

describe('a server that refuses', () => {
  const folder = mkdtempSync(join(tmpdir(), 'lock-loading-'));
  let server: RedisServer;
  let locks: LockService;

  beforeEach(async () => {
    // Half a millisecond for each key that it loads, and a check of its clients after each few of them.
    const slow = ['--key-load-delay', '500', '--loading-process-events-interval-bytes', '1024'];
    server = await RedisServer.start('--dir', folder, '--enable-debug-command', 'yes', ...slow);
    const store = await opened(new RedisLockStore(server.url), (message) => warnings.push(message));
    locks = makeLocks(store);
  });
  afterEach(() => server.stop());
  afterAll(() => rmSync(folder, { recursive: true }));

  async function expectRefusal(words: string, wait = 500): Promise<void> {
    const refusal = locks.acquire('k', { wait });
    await expect(refusal).rejects.toMatchObject({ code: 'LOCK_STORE', detail: expect.stringContaining(words) as string });
  }

  test('because it is a replica now is tried again, and named where that was in vain', async () => {
    await server.client.call('REPLICAOF', '127.0.0.1', 1);
    // The last attempt may meet the replica, or the connection while it is made anew.
    for (let wait = 0; wait < 500; wait += 50) {
      await expectRefusal('READONLY', wait);
    }
    const waiting = locks.withLock('k', { wait: 10_000 }, () => 'served');
    await sleep(300);
    await server.client.call('REPLICAOF', 'NO', 'ONE');
    expect(await waiting).toBe('served');
  });

  test('because it loads its data is tried again, and named where that was in vain', async () => {
    await server.client.call('DEBUG', 'POPULATE', 5_000);
    // It loads what it has, with the connections that stand.
    const loaded = server.client.call('DEBUG', 'RELOAD');
    await sleep(500);
    await expectRefusal('LOADING');
    expect(await locks.withLock('k', { wait: 15_000 }, () => 'served')).toBe('served');
    await loaded;
    // And what it had, with connections that come meanwhile.
    await server.client.call('SAVE');
    await server.kill();
    const started = server.start();
    await sleep(1_500);
    await expectRefusal('is loading its data');
    expect(await locks.withLock('k', { wait: 15_000 }, () => 'served')).toBe('served');
    await started;
  });
});
