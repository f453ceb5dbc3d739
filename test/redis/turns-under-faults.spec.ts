import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LockTrouble } from '../../lib/core/words/lock-event';
import type { LockService } from '../../lib/nest/lock.service';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { ACQUIRE } from '../../lib/redis/scripts/scripts';
import { noting } from '../support/noting';
import { quickest, timeOf } from '../support/quickest';
import { sourceOf } from '../support/redis-source';
import { until } from '../support/until';
import { makeLocks } from '../support/make-locks';
import { RedisServer } from '../support/redis-server';
import { TcpProxy } from '../support/tcp-proxy';
import { newHold } from '../support/new-hold';
import { patient } from '../support/patient';
import { recordCommands, type RecordedCommand } from '../support/record-commands';

const CLAIM_MS = 1_000;
const RECHECK_MS = 300;
const SELDOM_MS = 2_000;
/** For a machine that is busy with other things. */
const SLACK_MS = 1_500;
const LOCK = 'lock:lock:{k}';
const QUEUE = 'lock:queue:{k}';

let server: RedisServer;
let proxy: TcpProxy;
let stores: RedisLockStore[];
let troubles: LockTrouble[];
let locks: LockService;

beforeEach(async () => {
  stores = [];
  troubles = [];
  server = await RedisServer.start();
  proxy = await TcpProxy.start(server.port);
  locks = await openLocks();
});
afterEach(async () => {
  await Promise.all(stores.map((store) => store.close()));
  await proxy.stop();
  await server.stop();
});

async function openLocks(url = server.url): Promise<LockService> {
  const store = new RedisLockStore(sourceOf(url));
  await store.open({ prefix: 'lock', warn: () => undefined });
  stores.push(store);
  return makeLocks(store, { onTrouble: noting(troubles) });
}

async function queued(count: number): Promise<void> {
  await until(`a queue of ${count}`, async () => (await server.client.zcard(QUEUE)) === count);
}

test('a turn that overtakes the busy reply of the attempt in flight is not forgotten', async () => {
  const late = await openLocks(proxy.url);
  const others = [await openLocks(), await openLocks()];
  const tookMs = await quickest(SELDOM_MS - 200, async () => {
    proxy.commandLatencyMs = 0;
    const held = await locks.acquire('k', { wait: 20_000 });
    const before = others.map((service) => service.withLock('k', { wait: 20_000 }, () => undefined));
    await queued(2);
    proxy.commandLatencyMs = 400;
    const call = late.withLock('k', { ttl: 10_000, wait: 20_000 }, () => performance.now());
    await queued(3);
    const startedAt = performance.now();
    await held.release();
    await Promise.all(before);
    return (await call) - startedAt;
  });
  // The third in a queue would ask only after 2 s, and then find that its turn is over.
  expect(tookMs).toBeLessThan(SELDOM_MS - 200);
});

test('several first in the queue that are stopped for good cost a claim window and a re-check each', async () => {
  const held = await locks.acquire('k');
  const stopped = patient(stores[0] as RedisLockStore);
  for (const name of ['one', 'two']) {
    // They hear that it is their turn, and do nothing.
    const hold = newHold('k', { owner: name, id: name, by: 'stopped' });
    await stopped.acquire(hold, { name });
  }
  const live = [await openLocks(), await openLocks()].map((service) => service.withLock('k', { wait: 20_000 }, () => undefined));
  await queued(4);
  const releasedAt = performance.now();
  await held.release();
  await Promise.all(live);
  const tookMs = performance.now() - releasedAt;
  expect(tookMs).toBeGreaterThan(1.5 * CLAIM_MS);
  expect(tookMs).toBeLessThan(2 * (CLAIM_MS + RECHECK_MS) + 2 * SLACK_MS);
});

describe('a release', () => {
  test('out of memory hands over all the same, and the next owner has the lock once there is memory', async () => {
    const held = await locks.acquire('k', { ttl: '1m' });
    const next = (await openLocks()).withLock('k', { wait: 20_000 }, ({ fence }) => fence);
    await queued(1);
    await server.client.config('SET', 'maxmemory', '1');
    const { commands, stop } = await recordCommands(server);
    await held.release();
    expect(troubles.filter(({ type }) => type === 'releaseFailed' || type === 'lost')).toEqual([]);
    expect(await server.client.hexists(LOCK, 'owner')).toBe(0);
    // Not by a look at the lock: the turn may be over before the server comes to it.
    const reserves = ({ args: [command, key, field] }: RecordedCommand): boolean => command === 'HSET' && key === LOCK && field === 'turn';
    await until('that it is reserved', () => commands.some(reserves));
    stop();
    expect(await server.client.zcard(QUEUE)).toBe(0);
    await sleep(200);
    await server.client.config('SET', 'maxmemory', '0');
    expect(await next).toBeGreaterThan(held.fence);
  });

  test('out of memory that hands the lock to the next call of its process serves every waiter', async () => {
    // Far from the half of its lease, from which on it serves nobody else.
    const held = await locks.acquire('k', { ttl: '1m' });
    const order: number[] = [];
    const calls = [0, 1, 2].map((caller) => locks.withLock('k', { ttl: '1m' }, () => order.push(caller)));
    await queued(0);
    await server.client.config('SET', 'maxmemory', '1');
    await held.release();
    await Promise.all(calls);
    expect(order).toEqual([0, 1, 2]);
    expect(troubles).toEqual([]);
    expect(await server.client.exists(LOCK)).toBe(0);
  });

  test('whose PUBLISH is forbidden succeeds, and the next owner finds its turn at its re-check', async () => {
    await server.client.acl('SETUSER', 'mute', 'reset', 'on', '>secret', '~lock:*', '&*', '+@all', '-publish');
    const restricted = await openLocks(server.url.replace('//', '//mute:secret@'));
    const tookMs = await quickest(RECHECK_MS + SLACK_MS, async () => {
      const held = await restricted.acquire('k', { ttl: '1m', wait: 20_000 });
      const owner = await server.client.hget(LOCK, 'owner');
      const next = locks.withLock('k', { wait: 20_000 }, ({ fence }) => fence);
      await queued(1);
      await held.release();
      const nextMs = timeOf(next);
      // The next one may have it already.
      expect(await server.client.hget(LOCK, 'owner')).not.toBe(owner);
      expect(await next).toBeGreaterThan(held.fence);
      return nextMs;
    });
    expect(tookMs).toBeLessThan(RECHECK_MS + SLACK_MS);
    expect(troubles).toEqual([]);
  });

  test('by force whose reply is lost was carried out once: a repeated one leaves the next owner alone', async () => {
    const operator = await openLocks(proxy.url);
    const held = await locks.acquire('k');
    const nextLocks = await openLocks();
    const next = nextLocks.acquire('k');
    await queued(1);
    proxy.mode = 'killOnReply';
    await expect(operator.operations.forceRelease('k', { fence: held.fence })).rejects.toMatchObject({ code: 'LOCK_STORE', unknown: true });
    proxy.mode = 'pass';
    const lock = await next;
    await until('the loss', () => held.signal.aborted);
    expect(held.signal.reason).toMatchObject({ reason: 'forced' });
    await until('the hand-over', () =>
      operator.operations.inspect('k').then(
        (seen) => seen?.fence === lock.fence,
        () => false,
      ),
    );
    expect(await operator.operations.forceRelease('k', { fence: held.fence })).toBe(false);
    expect(lock.isHeld()).toBe(true);
    expect(await locks.operations.inspect('k')).toMatchObject({ fence: lock.fence, holds: 1 });
  });
});

describe('a command that is carried out a second time, long after its answer', () => {
  /** The first attempt that the server ran meanwhile, ready to be sent again. */
  async function recordAcquire(run: () => Promise<unknown>): Promise<() => Promise<unknown>> {
    const { commands, stop } = await recordCommands(server);
    await run();
    const isAcquire = ({ source, args: [command = '', sha] }: RecordedCommand): boolean =>
      source !== 'lua' && /^evalsha$/i.test(command) && sha === ACQUIRE.sha;
    await until('the command', () => commands.some(isAcquire));
    stop();
    const [, ...args] = commands.find(isAcquire)?.args ?? [];
    return () => server.client.call('EVALSHA', ...args);
  }

  /** Whose commands have a second for their reply. */
  const TTL_MS = 4_000;

  test('as a grant to a caller whose attempt was answered busy: no process has the lock for longer than its lease', async () => {
    const impatient = await openLocks();
    const granted = async (): Promise<boolean> => {
      const held = await locks.acquire('k', { ttl: '1m', wait: 20_000 });
      const again = await recordAcquire(async () => expect(await impatient.tryAcquire('k', { ttl: TTL_MS })).toBeNull());
      await held.release();
      return !Array.isArray(await again());
    };
    // On a machine that stands still it comes so late that the server refuses it.
    await until('that it is granted', granted);
    const leftMs = await server.client.pttl(LOCK);
    expect(leftMs).toBeGreaterThan(0);
    expect(leftMs).toBeLessThanOrEqual(TTL_MS);
    // So that the test need not wait for all of it.
    await server.client.pexpire(LOCK, 500);
    expect(await timeOf(locks.withLock('k', { wait: 20_000 }, () => undefined))).toBeLessThan(TTL_MS);
  });

  test('as a place of a caller who gave up: its process gives the turn up at once', async () => {
    const [impatient, others] = [await openLocks(), await openLocks()];
    const tookMs = await quickest(CLAIM_MS / 2, async () => {
      const held = await locks.acquire('k', { wait: 20_000 });
      const again = await recordAcquire(() => impatient.acquire('k', { wait: 50 }).catch(() => undefined));
      await queued(0);
      await again();
      await queued(1);
      const next = others.withLock('k', { wait: 20_000 }, () => undefined);
      await queued(2);
      await held.release();
      return timeOf(next);
    });
    expect(tookMs).toBeLessThan(CLAIM_MS / 2);
    await until('that nothing is left', async () => (await server.client.exists(QUEUE, LOCK)) === 0);
  });
});

test('an acquire that timed out and is carried out later is compensated: nothing stays taken', async () => {
  server.pause();
  await expect(locks.acquire('k', { ttl: '10m', wait: 0 })).rejects.toMatchObject({ code: 'LOCK_STORE', unknown: true });
  server.resume();
  // The attempt lay in the server's socket: the counter shows that it was carried out, and not only refused.
  const fence = await server.client.get('lock:fence:{0}');
  expect(fence).not.toBeNull();
  await until('that the lock is free', async () => (await server.client.exists(LOCK)) === 0);
  // Not for long, beside its ttl: the connection was silent, and may be made anew just now.
  expect(await locks.withLock('k', { wait: 15_000 }, (lock) => lock.fence)).toBeGreaterThan(Number(fence));
});
