import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool, type PoolConfig } from 'pg';
import { LockLostError, LockStoreError } from '../../lib/core/words/errors';
import type { StoredLock } from '../../lib/core/seam/lock-store';
import type { LockTrouble } from '../../lib/core/words/lock-event';
import type { LockService } from '../../lib/nest/lock.service';
import { PostgresLockStore } from '../../lib/postgres/postgres-lock-store';
import type { PostgresLockStoreOptions } from '../../lib/postgres/postgres-lock-store.options';
import { Load } from '../support/load';
import { makeLocks } from '../support/make-locks';
import { noting } from '../support/noting';
import { patient } from '../support/patient';
import { connected, PostgresServer } from '../support/postgres-server';
import { TcpProxy } from '../support/tcp-proxy';
import { until } from '../support/until';
import { goOn, stopProcess } from '../support/stopping';

let server: PostgresServer;
let proxy: TcpProxy;
let stores: PostgresLockStore[];
let troubles: LockTrouble[];
/** On the other side of the proxy. */
let locks: LockService;
/** Straight to the server. */
let others: LockService;

beforeAll(async () => {
  server = await PostgresServer.start();
  await new PostgresLockStore(server.pool()).ensureSchema();
});
afterAll(() => server.stop());

beforeEach(async () => {
  stores = [];
  troubles = [];
  proxy = await TcpProxy.start(server.port);
  locks = await openLocks(throughProxy());
  others = await openLocks(server.pool());
});
afterEach(async () => {
  proxy.mode = 'pass';
  if (!server.running) {
    await server.start();
  }
  server.resume();
  await Promise.all(stores.map((store) => store.close()));
  await proxy.stop();
  await server.query('TRUNCATE distributed_lock.lease, distributed_lock.done');
});

function throughProxy(config: PoolConfig = {}): Pool {
  return server.pool({ connectionString: server.urlFor('postgres', proxy.port), connectionTimeoutMillis: 1_000, ...config });
}

async function openLocks(pool: Pool, options: PostgresLockStoreOptions = {}): Promise<LockService> {
  const store = new PostgresLockStore(await connected(pool), options);
  stores.push(store);
  await store.open({ prefix: 'lock', warn: () => undefined });
  return makeLocks(store, { onTrouble: noting(troubles) });
}

/** When the lease of a key ends by the server's clock, in microseconds since 1970. */
async function endOf(key: string): Promise<number> {
  const sql = 'SELECT (extract(epoch FROM ends) * 1000000)::bigint AS ends FROM distributed_lock.lease WHERE key = $1';
  const [row] = await server.query<{ ends: string }>(sql, [`lock:{${key}}`]);
  return Number(row?.ends);
}

/** The stored lock, asked straight from the server. */
function stored(key = 'k'): Promise<StoredLock | null> {
  return patient(stores[1] as PostgresLockStore).inspect(key);
}

const kinds = (): string[] => troubles.map(({ type }) => type);

/** The holds that were released a short while ago. A release of an earlier test may have been carried out late. */
async function releasedHolds(): Promise<string[]> {
  return (await server.query<{ hold: string }>('SELECT hold FROM distributed_lock.done')).map(({ hold }) => hold);
}

/** Waits for a release that is none of these. */
async function releaseAfter(before: readonly string[]): Promise<void> {
  await until('the release', async () => (await releasedHolds()).some((hold) => !before.includes(hold)));
}

async function free(): Promise<void> {
  await until('that the lock is free', async () => (await stored()) === null);
}

describe('a reply that is lost', () => {
  test("acquire's: the lock ends up held by us with the same fence", async () => {
    proxy.ambush = '.acquire(';
    const acquiring = locks.acquire('k', { ttl: '1m', wait: '30s' });
    await until('the grant', async () => (await stored()) !== null);
    const granted = await stored();
    proxy.ambush = undefined;
    const lock = await acquiring;
    expect(lock.fence).toBe(granted?.fence);
    expect(await stored()).toMatchObject({ holds: 1 });
    await lock.release();
    expect(await stored()).toBeNull();
  });

  test("acquire's, with a caller who gives up: the lock is released again", async () => {
    // Its release finds no other connection, and can make none.
    const narrow = await openLocks(throughProxy({ max: 1 }), { listen: false });
    proxy.mode = 'dropReplies';
    await expect(narrow.acquire('k', { ttl: '10m', wait: 0 })).rejects.toMatchObject({ code: 'LOCK_STORE', unknown: true });
    expect(await stored()).not.toBeNull();
    proxy.mode = 'pass';
    await free();
  });

  test("release's: the result stands, and the release is sent again", async () => {
    const result = await locks.withLock('k', { ttl: 20_000 }, () => {
      proxy.ambush = '.release(';
      proxy.onAmbush = () => (proxy.ambush = undefined);
      return 'result';
    });
    expect(result).toBe('result');
    await until('that it was reported', () => troubles.length > 0);
    expect(kinds()).toEqual(['releaseFailed']);
    expect(await stored()).toBeNull();
    expect(await locks.withLock('k', () => 'next')).toBe('next');
  });

  test("release's, whose command is lost too: the lock is free soon, long before its ttl", async () => {
    await locks.withLock('k', { ttl: '10m' }, () => {
      proxy.mode = 'blackhole';
    });
    expect(await stored()).not.toBeNull();
    proxy.mode = 'pass';
    await free();
  });

  test("renewal's: the next one follows, and nothing is lost", async () => {
    await locks.withLock('k', { ttl: 5_000 }, async (lock) => {
      await new Promise<void>((resolve) => {
        proxy.ambush = '.renew(';
        proxy.onAmbush = () => {
          proxy.ambush = undefined;
          resolve();
        };
      });
      const endedAt = await endOf('k');
      await until('the next renewal', async () => (await endOf('k')) > endedAt);
      expect(lock.isHeld()).toBe(true);
    });
    expect(kinds()).not.toContain('lost');
  });

  test("exchange's: the next caller of the process has the lock, and a fence of its own", async () => {
    const first = await locks.acquire('k', { ttl: '1m' });
    const next = locks.acquire('k', { ttl: '1m', wait: '30s' });
    proxy.ambush = '.exchange(';
    const released = first.release();
    await until('that it was passed on', async () => ((await stored())?.fence ?? 0) > first.fence);
    const passed = await stored();
    proxy.ambush = undefined;
    await released;
    const lock = await next;
    expect(lock.fence).toBe(passed?.fence);
    expect(await stored()).toMatchObject({ holds: 1, fence: lock.fence });
    await lock.release();
    await free();
  });
});

describe('connections that the server ends', () => {
  test('all the time, in the middle of every operation: one owner at a time, fences rise, and every call ends well', async () => {
    const services = await Promise.all([1, 2, 3].map(() => openLocks(server.pool({ max: 5 }))));
    const load = new Load(services, ['a', 'b', 'c'], { ttl: 8_000, wait: 30_000 });
    let ended = 0;
    while (ended < 100 || [...load.seen.values()].some(({ grants }) => grants <= 5)) {
      const before = load.grants;
      ended += await server.terminateBackends();
      await sleep(30);
      // On a slow machine, connections that are ended as soon as they are made serve nobody.
      await until('another grant', () => load.grants > before);
    }
    await load.turnRound();
    await load.stop();
    expect({ overlaps: load.overlaps, disorders: load.disorders, losses: load.losses, failures: load.failures }).toEqual({
      overlaps: 0,
      disorders: 0,
      losses: 0,
      failures: [],
    });
  }, 180_000);

  test('in the middle of a statement that waits for the row: the grant is held by us or by nobody', async () => {
    for (let round = 0; round < 3; round++) {
      await others.withLock('k', () => undefined);
      // As a migration does.
      const blocker = await server.pool({ max: 1 }).connect();
      await blocker.query('BEGIN');
      await blocker.query('SELECT FROM distributed_lock.lease FOR UPDATE');
      const acquiring = locks.acquire('k', { ttl: 5_000, wait: 30_000 });
      await until('a statement that waits', async () => (await server.terminateBackends("wait_event_type = 'Lock'")) > 0);
      await blocker.query('COMMIT');
      blocker.release();
      const lock = await acquiring;
      expect(await stored()).toMatchObject({ fence: lock.fence, holds: 1 });
      await lock.release();
      expect(await stored()).toBeNull();
    }
  });

  test('as a statement that an administrator cancels: it is tried again', async () => {
    await others.withLock('k', () => undefined);
    const blocker = await server.pool({ max: 1 }).connect();
    await blocker.query('BEGIN');
    await blocker.query('SELECT FROM distributed_lock.lease FOR UPDATE');
    const acquiring = locks.acquire('k', { ttl: 5_000, wait: 30_000 });
    await until('a statement that waits', async () => {
      const rows = await server.query("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'");
      return rows.length > 0;
    });
    await blocker.query('COMMIT');
    blocker.release();
    await (await acquiring).release();
  });
});

describe('a server that does not answer', () => {
  test('half-open connections are bounded by the command timeout, lost at the deadline, and made anew', async () => {
    // One that is not ended leaves no room for another.
    const narrow = await openLocks(throughProxy({ max: 1 }), { listen: false });
    const call = narrow.withLock('k', { ttl: 900 }, async (lock) => {
      proxy.mode = 'blackhole';
      await sleep(1_100);
      expect(lock.isHeld()).toBe(false);
      expect(lock.signal.reason).toBeInstanceOf(LockLostError);
      proxy.mode = 'pass';
    });
    await expect(call).rejects.toMatchObject({ reason: 'expired' });
    expect(await narrow.withLock('k', { wait: 15_000 }, () => 1)).toBe(1);
  });

  test('a stopped server fails a call within its command timeout, and is used again when it goes on', async () => {
    server.pause();
    const startedAt = performance.now();
    await expect(locks.acquire('k', { wait: 0 })).rejects.toMatchObject({ code: 'LOCK_STORE' });
    // A second, and what a busy machine takes. Nothing else would end the wait.
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    server.resume();
    expect(kinds()).toEqual(['storeUnavailable']);
    expect(await locks.withLock('k', { wait: 20_000 }, () => 1)).toBe(1);
  });

  test('a server that is stopped for longer than the lease: the holder knows at once, and the next owner has a higher fence', async () => {
    // Real time: this one is to end.
    const lock = await locks.acquire('k', { ttl: 800 });
    const next = others.acquire('k', { ttl: 20_000, wait: 30_000 });
    server.pause();
    await sleep(1_200);
    expect(lock.isHeld()).toBe(false);
    expect(lock.signal.reason).toMatchObject({ reason: 'expired' });
    server.resume();
    const owner = await next;
    expect(owner.fence).toBeGreaterThan(lock.fence);
    await sleep(300);
    // The late renewals and the release of the first owner leave the second alone.
    expect(await stored()).toMatchObject({ fence: owner.fence, holds: 1 });
    expect(owner.isHeld()).toBe(true);
    await owner.release();
    await lock.release();
  });

  test('an acquire that timed out and is carried out later is compensated: nothing stays taken', async () => {
    await locks.withLock('k', () => undefined);
    const before = await releasedHolds();
    server.pause();
    await expect(locks.acquire('k', { ttl: '10m', wait: 0 })).rejects.toMatchObject({ code: 'LOCK_STORE', unknown: true });
    server.resume();
    await free();
    // After it, the acquire is refused where it was not carried out before.
    await releaseAfter(before);
    expect(await stored()).toBeNull();
    await sleep(500);
    expect(await stored()).toBeNull();
  });

  test('an acquire that is carried out after its own release is refused', async () => {
    const late = await openLocks(server.pool({ max: 10, application_name: 'late' }), { listen: false });
    await late.withLock('k', () => undefined);
    const backends = await server.query<{ pid: number }>("SELECT pid FROM pg_stat_activity WHERE application_name = 'late'");
    const pids = backends.map(({ pid }) => pid);
    const before = await releasedHolds();
    // The acquire lies in the socket of a process that is stopped; the release goes by another connection.
    pids.forEach((pid) => stopProcess(pid));
    await expect(late.acquire('k', { ttl: '10m', wait: 0 })).rejects.toMatchObject({ code: 'LOCK_STORE', unknown: true });
    await releaseAfter(before);
    pids.forEach((pid) => goOn(pid));
    await until('that it was carried out, and nobody was there for the reply', async () => {
      return (await server.query('SELECT FROM pg_stat_activity WHERE pid = ANY ($1)', [pids])).length < pids.length;
    });
    expect(await stored()).toBeNull();
    expect(await others.withLock('k', { wait: 20_000 }, () => 'free')).toBe('free');
  });

  test('a grant that comes after its own deadline is none, and is released', async () => {
    await locks.withLock('k', () => undefined);
    proxy.latencyMs = 150;
    await expect(locks.acquire('k', { ttl: 100, wait: 300 })).rejects.toBeInstanceOf(LockStoreError);
    proxy.latencyMs = 0;
    await free();
  });
});

describe('a server that is killed', () => {
  test('and comes back has every lock: its holders go on, and a waiter gets it from them', async () => {
    const held = await Promise.all(['a', 'b', 'k'].map((key) => locks.acquire(key, { ttl: 10_000 })));
    const before = await Promise.all(['a', 'b', 'k'].map((key) => stored(key)));
    const next = others.withLock('k', { wait: 30_000 }, ({ fence }) => fence);
    await server.kill();
    await server.start();
    const after = await Promise.all(['a', 'b', 'k'].map((key) => stored(key)));
    expect(after.map((lock) => lock?.fence)).toEqual(before.map((lock) => lock?.fence));
    const endedAt = await endOf('a');
    await until('a renewal', async () => (await endOf('a')) > endedAt);
    expect(held.map((lock) => lock.isHeld())).toEqual([true, true, true]);
    await Promise.all(held.map((lock) => lock.release()));
    expect(await next).toBeGreaterThan(held[2]?.fence as number);
    expect(kinds()).not.toContain('lost');
  });

  test('a waiter outlasts it, and a newcomer gets an error of the store', async () => {
    await server.kill();
    const waiting = locks.withLock('k', { wait: 30_000 }, () => 1);
    await expect(others.acquire('k', { wait: 0 })).rejects.toMatchObject({ code: 'LOCK_STORE' });
    await server.start();
    expect(await waiting).toBe(1);
  });

  test('over and over under load: one owner at a time, fences rise, and every call ends well', async () => {
    const services = await Promise.all([1, 2, 3].map(() => openLocks(server.pool({ max: 5 }))));
    const load = new Load(services, ['a', 'b'], { ttl: 10_000, wait: 30_000 });
    for (let round = 0; round < 4; round++) {
      await load.turnRound();
      await sleep(100);
      await server.kill();
      await server.start();
    }
    await load.turnRound();
    await load.stop();
    expect({ overlaps: load.overlaps, disorders: load.disorders, losses: load.losses, failures: load.failures }).toEqual({
      overlaps: 0,
      disorders: 0,
      losses: 0,
      failures: [],
    });
  }, 180_000);
});

/** Its idle connections end, and the process goes on. */
async function outlivesItsConnections(pool: Pool, name: string, service: LockService): Promise<void> {
  await service.withLock('k', () => undefined);
  expect(await server.terminateBackends(`application_name = '${name}'`)).toBeGreaterThan(0);
  await until('that the pool noticed', () => pool.idleCount === 0);
  expect(await service.withLock('k', () => 'again')).toBe('again');
  await Promise.all(stores.map((store) => store.close()));
  pool.on('error', () => undefined);
  await pool.end();
}

test('idle connections of a pool that nobody listens to end without an uncaught error', async () => {
  const pool = new Pool({ connectionString: server.url, application_name: 'lonely' });
  await outlivesItsConnections(pool, 'lonely', await openLocks(pool, { listen: false }));
});

test('so they do where another store that used the pool was closed, also twice', async () => {
  const pool = new Pool({ connectionString: server.url, application_name: 'shared' });
  const service = await openLocks(pool, { listen: false });
  await openLocks(pool, { listen: false });
  const other = stores.at(-1);
  await other?.close();
  await other?.close();
  expect(pool.listenerCount('error')).toBe(1);
  await outlivesItsConnections(pool, 'shared', service);
});
