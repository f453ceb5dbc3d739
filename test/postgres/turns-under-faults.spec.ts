import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import type { LockService } from '../../lib/nest/lock.service';
import { CLAIM_MS, RECHECK_MS } from '../../lib/kit/protocol';
import { PostgresLockStore } from '../../lib/postgres/postgres-lock-store';
import type { PostgresLockStoreOptions } from '../../lib/postgres/postgres-lock-store.options';
import { healthWith } from '../support/health-with';
import { Load } from '../support/load';
import { makeLocks } from '../support/make-locks';
import { isOfSlowness } from '../support/no-warning';
import { PgBouncer } from '../support/pgbouncer';
import { patient } from '../support/patient';
import { connected, PostgresServer } from '../support/postgres-server';
import { quickest, timeOf } from '../support/quickest';
import { TcpProxy } from '../support/tcp-proxy';
import { until } from '../support/until';
import { newHold } from '../support/new-hold';

/** For a machine whose processes stand still one after the other. A process that starves waits for 20 s. */
const SLACK_MS = 5_000;

let server: PostgresServer;
let proxy: TcpProxy;
let stores: PostgresLockStore[];
let warnings: string[];
let locks: LockService;

beforeAll(async () => {
  server = await PostgresServer.start();
  await new PostgresLockStore(server.pool()).ensureSchema();
});
afterAll(() => server.stop());

beforeEach(async () => {
  stores = [];
  warnings = [];
  proxy = await TcpProxy.start(server.port);
  locks = await openLocks();
});
afterEach(async () => {
  await Promise.all(stores.map((store) => store.close()));
  await proxy.stop();
  await server.query('TRUNCATE distributed_lock.lease, distributed_lock.done');
});

async function openLocks(pool: Pool = server.pool(), options: PostgresLockStoreOptions = {}): Promise<LockService> {
  const store = new PostgresLockStore(await connected(pool), options);
  stores.push(store);
  await store.open({
    prefix: 'lock',
    warn: (message) => message.includes('fsync') || isOfSlowness(message) || warnings.push(message),
  });
  return makeLocks(store);
}

/** Commands go straight to the server, and turns come through the proxy. */
function listensThroughProxy(): Promise<LockService> {
  return openLocks(server.pool(), { listen: server.urlFor('postgres', proxy.port) });
}

async function queued(count: number): Promise<void> {
  await until(
    `a queue of ${count}`,
    async () => ((await patient(stores[0] as PostgresLockStore).inspect('k'))?.waiters.length ?? 0) === count,
  );
}

/** Places before all others, of processes that do not claim their turn. */
async function queueAbsent(...names: string[]): Promise<void> {
  const store = patient(stores[0] as PostgresLockStore);
  for (const name of names) {
    await store.acquire(newHold('k', { owner: name, id: name, by: 'absent' }), { name });
  }
}

/** The time from the release to the grant of the waiter, in milliseconds. */
async function handOver(waiter: LockService): Promise<number> {
  const held = await locks.acquire('k', { ttl: '1m' });
  const next = waiter.withLock('k', { wait: 20_000 }, () => performance.now());
  await queued(1);
  await sleep(50);
  const releasedAt = performance.now();
  await held.release();
  return (await next) - releasedAt;
}

/** The process ids, on the server, of the connections that listen. */
async function listeners(): Promise<number[]> {
  const locked = await server.query<{ pid: number }>(
    "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock' AND granted",
  );
  return locked.map(({ pid }) => pid);
}

function endListeners(): Promise<number> {
  return server.terminateBackends(
    "query LIKE '%presence%' OR query LIKE 'LISTEN%' OR pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock')",
  );
}

/**
 * Expects that a process is notified of its turn. A process that believes so, and was second when it asked last, would
 * otherwise poll after two seconds.
 */
async function expectNotified(waiter: LockService): Promise<void> {
  expect(await healthWith(waiter)).toMatchObject({ hearsTurns: true });
  const first = await openLocks();
  const round = async (): Promise<number> => {
    const held = await locks.acquire('k', { ttl: '1m' });
    const before = first.acquire('k', { wait: 20_000 });
    await queued(1);
    const next = waiter.withLock('k', { wait: 20_000 }, () => performance.now());
    await queued(2);
    await held.release();
    const other = await before;
    const releasedAt = performance.now();
    await other.release();
    return (await next) - releasedAt;
  };
  const soonMs = RECHECK_MS.late / 2;
  expect(await quickest(soonMs, round)).toBeLessThan(soonMs);
}

describe('a listener', () => {
  test('that the server ends once is made anew: turns are notified again', async () => {
    const waiter = await openLocks();
    const before = await listeners();
    await endListeners();
    await until('new listeners', async () => (await listeners()).filter((pid) => !before.includes(pid)).length >= before.length);
    await expectNotified(waiter);
  });

  test('that is ended while its process waits far behind: the turn comes within a re-check', async () => {
    const held = await locks.acquire('k', { ttl: '1m' });
    await queueAbsent('one', 'two');
    const far = (await openLocks()).withLock('k', { wait: 20_000 }, () => undefined);
    await queued(3);
    await endListeners();
    await held.release();
    // A process without a listener is skipped. This process has one again before that, or finds its place gone and
    // queues anew.
    expect(await timeOf(far)).toBeLessThan(2 * (CLAIM_MS + RECHECK_MS.soon) + SLACK_MS);
  });

  test('that is ended over and over starves nobody', async () => {
    const services = await Promise.all([1, 2, 3].map(() => openLocks()));
    const load = new Load(services, ['k'], { ttl: 5_000, wait: 20_000 });
    const over = performance.now() + 2_500;
    while (performance.now() < over) {
      await endListeners();
      await sleep(30);
    }
    await load.turnRound();
    await load.stop();
    expect({ overlaps: load.overlaps, disorders: load.disorders, losses: load.losses, failures: load.failures }).toEqual({
      overlaps: 0,
      disorders: 0,
      losses: 0,
      failures: [],
    });
    expect(load.longestMs).toBeLessThan(RECHECK_MS.late + CLAIM_MS + 2 * RECHECK_MS.soon + SLACK_MS);
  });

  test('that hears nothing although its connection stands: a turn costs a claim window, and the process polls often from then on', async () => {
    const deaf = await listensThroughProxy();
    proxy.mode = 'muteSubscribers';
    // More than those that poll often because they are next.
    const rivals = await Promise.all([1, 2, 3, 4].map(() => openLocks()));
    const load = new Load([...rivals, deaf], ['k'], { ttl: 5_000, wait: 20_000 });
    await sleep(3_500);
    await load.turnRound();
    await load.stop();
    expect(load.failures).toEqual([]);
    expect(load.longestMs).toBeLessThan(RECHECK_MS.late + CLAIM_MS + 2 * RECHECK_MS.soon + SLACK_MS);
  });

  test('that is half open is noticed by its pings and made anew', async () => {
    const holder = await listensThroughProxy();
    await until('the listener', async () => (await listeners()).length === 2);
    const before = await listeners();
    proxy.mode = 'blackhole';
    // Long enough to swallow a ping, whose reply is then missed.
    await sleep(6_000);
    proxy.mode = 'pass';
    await until('a new listener', async () => (await listeners()).some((pid) => !before.includes(pid)));
    const call = holder.withLock('k', { ttl: 60_000 }, async (lock) => {
      await patient(stores[0] as PostgresLockStore).forceRelease('k', lock.fence);
      await until('that it was notified', () => !lock.isHeld());
    });
    await expect(call).rejects.toMatchObject({ reason: 'forced' });
  });
});

describe('behind pgbouncer in transaction mode', () => {
  let bouncer: PgBouncer;

  beforeEach(async () => {
    bouncer = await PgBouncer.start(server, 3);
  });
  afterEach(() => bouncer.stop());

  test('without a listener the locks work, and nothing warns', async () => {
    const services = await Promise.all([1, 2, 3].map(() => openLocks(bouncer.pool({ max: 4 }), { listen: false })));
    const load = new Load(services, ['a', 'b'], { ttl: 5_000, wait: 20_000 });
    await sleep(1_000);
    await load.turnRound();
    await load.stop();
    expect({ overlaps: load.overlaps, disorders: load.disorders, losses: load.losses, failures: load.failures }).toEqual({
      overlaps: 0,
      disorders: 0,
      losses: 0,
      failures: [],
    });
    expect(warnings).toEqual([]);
  });

  test('with a listener straight to the server, turns are notified', async () => {
    const waiter = await openLocks(bouncer.pool(), { listen: server.url });
    await expectNotified(waiter);
    expect(warnings).toEqual([]);
  });

  test('with a listener behind it, one warning says so, and waiters poll', async () => {
    const waiter = await openLocks(bouncer.pool());
    await until('the warning', () => warnings.length > 0);
    expect(await handOver(waiter)).toBeLessThan(RECHECK_MS.soon + SLACK_MS);
    expect(await handOver(waiter)).toBeLessThan(RECHECK_MS.soon + SLACK_MS);
    expect(warnings).toEqual([expect.stringMatching(/pgbouncer in transaction mode.*every 300 ms/)]);
  });
});
