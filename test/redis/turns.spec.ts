import 'reflect-metadata';
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LockService } from '../../lib/nest/lock.service';
import { RedisLockStore } from '../../lib/stores/redis/redis-lock-store';
import { makeLocks } from '../support/make-locks';
import { RedisServer } from '../support/redis-server';
import { TcpProxy } from '../support/tcp-proxy';
import { newHold } from '../support/new-hold';
import { handOver, untilWaiting } from '../support/hand-over';
import { until } from '../support/until';

const CLAIM_MS = 1_000;
const RECHECK_MS = 300;

let server: RedisServer;
let locks: LockService;
let stores: RedisLockStore[];
let children: ChildProcess[];

beforeEach(async () => {
  stores = [];
  children = [];
  server = await RedisServer.start();
  locks = makeLocks(await openStore());
});
afterEach(async () => {
  for (const child of children) {
    child.kill('SIGKILL');
  }
  await Promise.all(stores.map((store) => store.close()));
  await server.stop();
});

async function openStore(url = server.url): Promise<RedisLockStore> {
  const store = new RedisLockStore(url);
  await store.open({ prefix: 'lock', warn: () => undefined });
  stores.push(store);
  return store;
}

/** Another process that waits for the key; resolves once it stands in the queue, and is notified: until then it has half a number. */
async function startWaiter(key: string, wait = 20_000): Promise<{ child: ChildProcess; granted: Promise<{ fence: number }> }> {
  const child = fork('test/fixtures/waiter.mjs', [server.url, key, String(wait)], { execArgv: [] });
  children.push(child);
  await once(child, 'message');
  const granted = once(child, 'message').then(([message]) => message as { fence: number });
  await until('its place', async () => {
    const places = await server.client.zrange(queueOf(key), 0, '-1', 'WITHSCORES');
    const at = places.findIndex((place) => place.includes(`:${child.pid}:`));
    return at >= 0 && Number(places[at + 1]) % 1 === 0;
  });
  return { child, granted };
}

/** The channels where a process is notified. */
const subscribed = async ({ pid }: ChildProcess): Promise<string[]> =>
  (await server.client.pubsub('CHANNELS', `lock:wake:*:${pid}:*`)) as string[];

const queueOf = (key: string): string => `lock:queue:{${key}}`;
const lockOf = (key: string): string => `lock:lock:{${key}}`;

async function timeOf(call: Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await call;
  return performance.now() - startedAt;
}

describe('order across processes', () => {
  test('is the order of arrival, and one release wakes one process', async () => {
    const held = await locks.acquire('k');
    const waiters = [await startWaiter('k'), await startWaiter('k'), await startWaiter('k')];
    expect((await locks.inspect('k'))?.waiters).toEqual(waiters.map(({ child }) => expect.stringContaining(`(pid ${child.pid})`)));
    await held.release();
    const fences = await Promise.all(waiters.map(({ granted }) => granted.then(({ fence }) => fence)));
    expect(fences).toEqual(fences.toSorted((a, b) => a - b));
    expect(fences[0]).toBeGreaterThan(held.fence);
  });

  test('a first in the queue that was killed is skipped at once', async () => {
    const held = await locks.acquire('k');
    const first = await startWaiter('k');
    const second = await startWaiter('k');
    first.child.kill('SIGKILL');
    await once(first.child, 'exit');
    await until('that the server has seen its sockets close', async () => (await subscribed(first.child)).length === 0);
    const releasedAt = performance.now();
    await held.release();
    await second.granted;
    expect(performance.now() - releasedAt).toBeLessThan(CLAIM_MS - 200);
  });

  test('a first in the queue that is stopped is skipped after the claim window, and queues anew when it goes on', async () => {
    const held = await locks.acquire('k');
    const first = await startWaiter('k');
    const second = await startWaiter('k');
    first.child.kill('SIGSTOP');
    const releasedAt = performance.now();
    await held.release();
    await second.granted;
    const tookMs = performance.now() - releasedAt;
    expect(tookMs).toBeGreaterThan(CLAIM_MS - 200);
    expect(tookMs).toBeLessThan(CLAIM_MS + RECHECK_MS + 300);
    first.child.kill('SIGCONT');
    expect((await first.granted).fence).toBeGreaterThan(0);
  });

  test('a waiter that is killed with its turn reserved loses it after the claim window', async () => {
    const held = await locks.acquire('k');
    const first = await startWaiter('k');
    first.child.kill('SIGSTOP');
    const second = await startWaiter('k');
    const releasedAt = performance.now();
    await held.release();
    expect(await server.client.hget(lockOf('k'), 'turn')).toContain(`:${first.child.pid}:`);
    first.child.kill('SIGKILL');
    await second.granted;
    expect(performance.now() - releasedAt).toBeLessThan(CLAIM_MS + RECHECK_MS + 300);
  });

  test('a lease that expires with a queue behind it goes to the first of them', async () => {
    const crashed = newHold('k', { owner: 'crashed', id: 'crashed', ttlMs: 60_000, by: 'crashed' });
    await (stores[0] as RedisLockStore).acquire(crashed);
    const first = await startWaiter('k');
    const second = await startWaiter('k');
    // Only now: on a busy machine it takes longer than a short lease until both wait.
    await server.client.pexpire(lockOf('k'), 700);
    const [one, two] = await Promise.all([first.granted, second.granted]);
    expect(one.fence).toBeLessThan(two.fence);
  });
});

describe('a subscription', () => {
  let proxy: TcpProxy;
  let waiting: LockService;

  beforeEach(async () => {
    proxy = await TcpProxy.start(server.port);
    waiting = makeLocks(await openStore(proxy.url));
  });
  afterEach(() => proxy.stop());

  async function killSubscribers(): Promise<void> {
    await server.client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
  }

  test('that is killed is made anew, and its process asks for a turn that it may have missed', async () => {
    const held = await locks.acquire('k');
    const call = waiting.withLock('k', { wait: 10_000 }, () => performance.now());
    await untilWaiting(locks, 'k');
    await killSubscribers();
    await held.release();
    expect(await timeOf(call)).toBeLessThan(RECHECK_MS + 200);
    await sleep(500);
    expect(await handOver(locks, waiting)).toBeLessThan(100);
  });

  test('that is killed over and over keeps nobody waiting', async () => {
    for (let round = 0; round < 10; round++) {
      const held = await locks.acquire('k');
      const call = waiting.withLock('k', { wait: 10_000 }, () => undefined);
      await sleep(20);
      await killSubscribers();
      await sleep(round * 10);
      await held.release();
      expect(await timeOf(call)).toBeLessThan(CLAIM_MS + RECHECK_MS);
    }
  });

  test('that is half open costs a re-check, and is made anew by its pings', async () => {
    const held = await locks.acquire('k');
    const call = waiting.withLock('k', { wait: 10_000 }, () => undefined);
    await untilWaiting(locks, 'k');
    proxy.mode = 'muteSubscribers';
    await held.release();
    expect(await timeOf(call)).toBeLessThan(RECHECK_MS + 100);
    proxy.mode = 'pass';
    await sleep(11_000);
    expect(await handOver(locks, waiting)).toBeLessThan(100);
  }, 30_000);

  test('that is half open keeps no waiter far behind waiting: one that was skipped asks more often', async () => {
    const held = await locks.acquire('k');
    const others = await Promise.all([openStore(), openStore(), openStore()]);
    const before = others.map((store) => makeLocks(store).withLock('k', { wait: 10_000 }, () => sleep(20)));
    await untilWaiting(locks, 'k', 3);
    const call = waiting.withLock('k', { wait: 20_000 }, () => undefined);
    await untilWaiting(locks, 'k', 4);
    proxy.mode = 'muteSubscribers';
    await held.release();
    await Promise.all(before);
    expect(await timeOf(call)).toBeLessThan(2_000 + CLAIM_MS + RECHECK_MS);
  }, 30_000);

  test('that is half open is made anew at once where its process was passed over', async () => {
    // One that is new is trusted for 5 s; its next ping but one, which would find out as well, is sent after 15 s.
    await sleep(5_300);
    const held = await locks.acquire('k');
    const others = await Promise.all([openStore(), openStore(), openStore()]);
    const queue = others.map((store) => makeLocks(store).withLock('k', { wait: 10_000 }, () => sleep(20)));
    await untilWaiting(locks, 'k', 3);
    queue.push(waiting.withLock('k', { wait: 20_000 }, () => undefined));
    await untilWaiting(locks, 'k', 4);
    queue.push(makeLocks(await openStore()).withLock('k', { wait: 20_000 }, () => undefined));
    await untilWaiting(locks, 'k', 5);
    proxy.mode = 'muteSubscribers';
    await held.release();
    await sleep(500);
    proxy.mode = 'pass';
    await Promise.all(queue);
    expect(await handOver(locks, waiting)).toBeLessThan(RECHECK_MS / 2);
  }, 30_000);

  test('a turn that comes after its waiter gave up is passed on at once', async () => {
    const other = makeLocks(await openStore());
    let outcome: string;
    let tookMs: number;
    do {
      proxy.latencyMs = 0;
      const held = await locks.acquire('k', { wait: 10_000 });
      const stop = new AbortController();
      const impatient = waiting.withLock('k', { wait: 10_000, signal: stop.signal }, () => 'granted').catch((error: Error) => error.name);
      await untilWaiting(locks, 'k');
      const patient = other.withLock('k', { wait: 10_000 }, () => performance.now());
      await untilWaiting(locks, 'k', 2);
      proxy.latencyMs = 400;
      await held.release();
      const gaveUpAt = performance.now();
      stop.abort();
      outcome = await impatient;
      tookMs = (await patient) - gaveUpAt;
      // Once more where it had just asked again, and so took its turn.
    } while (outcome === 'granted');
    expect(outcome).toBe('LockNotAcquiredError');
    expect(tookMs).toBeLessThan(CLAIM_MS - 200);
  });
});

describe('what waiting leaves behind', () => {
  test('a queue has an expiry, which each attempt refreshes', async () => {
    const held = await locks.acquire('k');
    await startWaiter('k');
    expect(await server.client.pttl(queueOf('k'))).toBeGreaterThan(58_000);
    await server.client.pexpire(queueOf('k'), 10_000);
    await until('the refresh', async () => (await server.client.pttl(queueOf('k'))) > 58_000);
    await held.release();
  });

  test('a queue is gone with the last of those who waited', async () => {
    const held = await locks.acquire('k');
    const other = makeLocks(await openStore());
    await expect(other.acquire('k', { wait: 50 })).rejects.toMatchObject({ reason: 'busy' });
    await held.release();
    const left = async (): Promise<string[]> => (await server.client.keys('lock:*')).filter((name) => !/^lock:(done|fence):/.test(name));
    await until('that nothing is left', async () => (await left()).length === 0);
  });
});

test('an exchange within a process is one command for each caller, and a hand-over between processes three at most', async () => {
  const other = makeLocks(await openStore());
  const held = await locks.acquire('k');
  const callers = [locks, other].flatMap((service) =>
    Array.from({ length: 64 }, () => service.withLock('k', { wait: 20_000 }, () => undefined)),
  );
  await untilWaiting(locks, 'k');
  await server.client.config('RESETSTAT');
  await held.release();
  await Promise.all(callers);
  const sent = (await server.commandCounts()).get('evalsha') ?? 0;
  // 8 turns of 16 callers: each caller costs one command, each turn two more.
  expect(sent).toBeLessThan(128 + 8 * 2 + 10);
});

test('a re-entry and a ticket bypass the queue', async () => {
  await locks.withLock('k', async (lock) => {
    const waiter = await startWaiter('k');
    const guests = makeLocks(await openStore());
    expect(await locks.withLock('k', { wait: 0 }, ({ fence }) => fence)).toBe(lock.fence);
    expect(await guests.withLock('k', { ticket: lock.ticket, wait: 0 }, ({ fence }) => fence)).toBe(lock.fence);
    void waiter.granted;
  });
});
