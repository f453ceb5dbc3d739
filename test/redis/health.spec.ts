import { jest } from '@jest/globals';
import { Redis } from 'ioredis';
import type { LockHealth } from '../../lib/core/words/lock-health';
import type { LockService } from '../../lib/nest/lock.service';
import type { RedisLockStoreOptions } from '../../lib/redis/redis-lock-store.options';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { refusesBy } from '../../lib/redis/server-info';
import { healthWith } from '../support/health-with';
import { makeLocks } from '../support/make-locks';
import { openSwiftly } from '../support/open-swiftly';
import { closing, opened } from '../support/opened';
import { RedisServer } from '../support/redis-server';
import { sourceOf } from '../support/redis-source';
import { ServerClock } from '../support/server-clock';
import { TcpProxy } from '../support/tcp-proxy';
import { until } from '../support/until';

/** Half an hour: no stall of a machine is as long. */
const AHEAD_MS = 1_800_000;

let server: RedisServer;
let proxy: TcpProxy;

beforeEach(async () => {
  server = await RedisServer.start();
  proxy = await TcpProxy.start(server.port);
});
afterEach(async () => {
  await proxy.stop();
  await server.stop();
});

async function openLocks(url = proxy.url, options: RedisLockStoreOptions = {}): Promise<LockService> {
  return makeLocks(await opened(new RedisLockStore(sourceOf(url), options)));
}

/** The locks of a store to which the server has told all that it knows. */
async function openSwiftLocks(): Promise<LockService> {
  const { store } = await openSwiftly(() => new RedisLockStore(sourceOf(proxy.url)));
  return makeLocks(closing(store));
}

/** The next health of a server that answers: a machine may stall. */
async function nextHealth(locks: LockService): Promise<LockHealth> {
  let health: LockHealth | undefined;
  await until('an answer', async () => (health = await locks.operations.health()).reachable);
  return health as LockHealth;
}

test('a server that is there answers all that is known of it', async () => {
  const locks = await openSwiftLocks();
  await locks.acquire('k');
  expect(await healthWith(locks)).toEqual({
    status: 'up',
    reasons: [],
    reachable: true,
    server: 'Redis',
    latencyMs: expect.any(Number),
    hearsTurns: true,
    clockSkewMs: expect.any(Number),
    heldHere: 1,
    waitingHere: 0,
    leastMarginMs: expect.any(Number),
    evicts: false,
  });
});

test('a check costs one TIME, one INFO and one PUBSUB NUMSUB, and stores nothing, and calls cost none', async () => {
  const locks = await openLocks(server.url);
  await healthWith(locks);
  await server.client.config('RESETSTAT');
  const before = await server.client.dbsize();
  for (let check = 0; check < 5; check++) {
    await locks.operations.health();
  }
  const counts = await server.commandCounts();
  counts.delete('config|resetstat');
  counts.delete('dbsize');
  counts.delete('info');
  // The subscription asks for itself from time to time.
  counts.delete('ping');
  expect(Object.fromEntries(counts)).toEqual({ time: 5, 'pubsub|numsub': 5 });
  // Marks of the check at the start may end meanwhile.
  expect(await server.client.dbsize()).toBeLessThanOrEqual(before);
});

test('latency is that of the way to the server and back', async () => {
  const locks = await openLocks();
  await healthWith(locks);
  proxy.commandLatencyMs = 120;
  const { latencyMs = 0 } = await nextHealth(locks);
  expect(latencyMs).toBeGreaterThanOrEqual(115);
});

test('the smallest rights are enough, without +ping and +info too', async () => {
  const skipped = jest.spyOn(console, 'warn').mockImplementation(() => undefined);
  const rights = '+evalsha +eval +get +getset +set +del +exists +hget +hset +hdel +hlen +hmget +hgetall +zadd +zrange +zrank +zrem +zscore';
  const others = '+pexpire +pttl +time +publish +subscribe';
  await server.client.acl('SETUSER', 'locker', 'on', '>secret', '~lock:*', '&lock:wake:*', ...`${rights} ${others}`.split(' '));
  const locks = await openLocks(`redis://locker:secret@127.0.0.1:${server.port}`);
  const health = await healthWith(locks);
  expect(health).toMatchObject({ status: 'up', hearsTurns: true });
  expect(health).not.toHaveProperty('evicts');
  expect(JSON.stringify(health)).not.toMatch(/secret|locker|127\.0\.0\.1/);
  await locks.operations.health();
  // Each refusal stands in the log of the server: it is asked once who hears.
  expect(await server.client.info('commandstats')).toMatch(/cmdstat_pubsub(\|numsub)?:.*rejected_calls=1,/);
  skipped.mockRestore();
});

test('a keyPrefix of the client stands before no channel', async () => {
  const client = new Redis({ port: server.port, keyPrefix: 'app:', lazyConnect: true });
  const store = await opened(new RedisLockStore(client));
  expect(await healthWith(makeLocks(store))).toMatchObject({ status: 'up', hearsTurns: true });
  client.disconnect();
});

test('a server that is gone is degraded at first, and down when it has been gone for long; and up again', async () => {
  const locks = await openLocks();
  await healthWith(locks);
  proxy.mode = 'refuse';
  expect(await locks.operations.health({ downAfter: '10m' })).toMatchObject({ status: 'degraded', reachable: false });
  await until('down', async () => (await locks.operations.health({ downAfter: 300 })).status === 'down');
  const { unreachableMs, reasons } = await locks.operations.health();
  expect(unreachableMs).toBeGreaterThanOrEqual(300);
  expect(reasons).toContain('unreachable');
  proxy.mode = 'pass';
  expect(await healthWith(locks)).toMatchObject({ status: 'up', reachable: true });
});

test('a server that answers nothing is found within a second or so', async () => {
  const locks = await openLocks();
  await healthWith(locks);
  proxy.mode = 'blackhole';
  expect(await locks.operations.health()).toMatchObject({ status: 'degraded', reachable: false });
});

test('a process that hears no turns is degraded', async () => {
  const locks = await openLocks();
  await healthWith(locks);
  proxy.mode = 'deafen';
  expect(await healthWith(locks, 'polls')).toMatchObject({ status: 'degraded', reachable: true, hearsTurns: false });
  proxy.mode = 'pass';
  expect(await healthWith(locks)).toMatchObject({ hearsTurns: true });
});

test.each([
  ['full', ['CONFIG', 'SET', 'maxmemory', '1'], ['CONFIG', 'SET', 'maxmemory', '0']],
  ['readOnly', ['REPLICAOF', '127.0.0.1', '1'], ['REPLICAOF', 'NO', 'ONE']],
] as const)(
  'a server that answers and is %s is down without a call, and up again with its next answer',
  async (reason, [begin, ...before], [end, ...after]) => {
    const locks = await openLocks();
    await healthWith(locks);
    await server.client.call(begin, ...before);
    expect(await healthWith(locks, reason)).toMatchObject({ reachable: true, refuses: reason });
    expect(await locks.operations.health({ downAfter: '10m' })).toMatchObject({ status: 'degraded' });
    await until('down', async () => (await locks.operations.health({ downAfter: 300 })).status === 'down');
    await expect(locks.acquire('k', { wait: 0 })).rejects.toMatchObject({ code: 'LOCK_STORE' });
    await server.client.call(end, ...after);
    expect(await healthWith(locks)).toMatchObject({ status: 'up', reachable: true });
  },
);

test.each([
  [['maxmemory:100', 'used_memory:101', 'maxmemory_policy:noeviction'], 'full'],
  [['maxmemory:100', 'used_memory:100', 'maxmemory_policy:noeviction'], undefined],
  // Buffers do not count, as the server counts itself.
  [['maxmemory:100', 'used_memory:150', 'mem_not_counted_for_evict:50', 'maxmemory_policy:noeviction'], undefined],
  [['maxmemory:100', 'used_memory:101', 'maxmemory_policy:allkeys-lru'], undefined],
  [['maxmemory:0', 'used_memory:101', 'maxmemory_policy:noeviction'], undefined],
  [['role:slave', 'slave_read_only:1'], 'readOnly'],
  [['role:slave', 'slave_read_only:0'], undefined],
  // It sends its callers on to its master.
  [['redis_mode:cluster', 'role:slave', 'slave_read_only:1'], undefined],
  [['role:master'], undefined],
  [[], undefined],
])('a server with %j takes no locks for the reason %s', (lines, reason) => {
  expect(refusesBy(lines.join('\r\n'))).toBe(reason);
});

test('that the server evicts is shown', async () => {
  await server.client.config('SET', 'maxmemory-policy', 'allkeys-lru');
  expect(await healthWith(await openSwiftLocks())).toMatchObject({ status: 'up', evicts: true });
});

describe('with replicas', () => {
  let link: TcpProxy;
  let replica: RedisServer;

  beforeEach(async () => {
    link = await TcpProxy.start(server.port);
    replica = await RedisServer.startReplica(link.port);
    await server.replicasOnline(1);
  });
  afterEach(async () => {
    await link.stop();
    await replica.stop();
  });

  /** Whether the replica has confirmed all that was written, so that nothing is left that it could miss. */
  async function isSettled(): Promise<boolean> {
    const info = await server.client.info('replication');
    const [, written] = /^master_repl_offset:(\d+)/m.exec(info) ?? [];
    const [, confirmed] = /^slave0:.*\boffset=(\d+)/m.exec(info) ?? [];
    return written !== undefined && written === confirmed;
  }

  test.each<[string, () => unknown]>([
    ['hangs', () => replica.pause()],
    ['is gone', () => replica.kill()],
    ['is cut off', () => (link.mode = 'blackhole')],
  ])('one that %s leaves too few', async (_, strike) => {
    const locks = await openLocks(server.url, { minReplicas: 1 });
    expect(await healthWith(locks)).toMatchObject({ status: 'up', replicasConfirm: true });
    await until('that the replica has everything', isSettled);
    await strike();
    // Nothing was written since: the very next check has to find it.
    const found = { status: 'degraded', replicasConfirm: false, reasons: ['tooFewReplicas'] };
    expect(await nextHealth(locks)).toMatchObject(found);
  });

  test('without +publish the replicas are still counted', async () => {
    await server.client.acl('SETUSER', 'locker', 'on', '>secret', '~*', '&*', '+@all', '-publish');
    const locks = await openLocks(`redis://locker:secret@127.0.0.1:${server.port}`, { minReplicas: 1 });
    expect(await healthWith(locks)).toMatchObject({ replicasConfirm: true });
  });
});

describe('a clock that is off', () => {
  let clock: ServerClock;
  let ahead: RedisServer;

  beforeEach(async () => {
    clock = new ServerClock();
    ahead = await clock.startServer();
  });
  afterEach(async () => {
    await ahead.stop();
    clock.remove();
  });

  test('is shown, and nothing more, where no replica has to confirm', async () => {
    clock.set(AHEAD_MS);
    const health = await healthWith(await openLocks(ahead.url));
    expect(health.clockSkewMs).toBeGreaterThan(AHEAD_MS - 60_000);
    expect(health.clockSkewMs).toBeLessThan(AHEAD_MS + 60_000);
  });

  test('degrades locks that replicas confirm', async () => {
    const replica = await RedisServer.startReplica(ahead.port);
    await ahead.replicasOnline(1);
    const locks = await openLocks(ahead.url, { minReplicas: 1 });
    await healthWith(locks);
    clock.set(-AHEAD_MS);
    const health = await healthWith(locks, 'clockSkew');
    expect(health.clockSkewMs).toBeLessThan(-AHEAD_MS + 60_000);
    await replica.stop();
  });
});

test('a store that was closed does not answer', async () => {
  const store = await opened(new RedisLockStore(sourceOf(proxy.url)));
  const locks = makeLocks(store);
  await store.close();
  expect(await locks.operations.health()).toMatchObject({ status: 'degraded', reachable: false });
});

test('a client that is given keeps its name and password to itself', async () => {
  await server.client.acl('SETUSER', 'locker', 'on', '>topsecret', '~*', '&*', '+@all');
  const client = new Redis(server.port, '127.0.0.1', { username: 'locker', password: 'topsecret' });
  const store = await opened(new RedisLockStore(client));
  const said = JSON.stringify(await makeLocks(store).operations.health());
  expect(said).not.toMatch(/topsecret|locker|127\.0|\bhost/);
  client.disconnect();
});
