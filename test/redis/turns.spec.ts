import 'reflect-metadata';
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LockService } from '../../lib/nest/lock.service';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { makeLocks } from '../support/make-locks';
import { notified, recordCommands, type RecordedCommand } from '../support/record-commands';
import { RedisServer } from '../support/redis-server';
import { sourceOf } from '../support/redis-source';
import { TcpProxy } from '../support/tcp-proxy';
import { newHold } from '../support/new-hold';
import { patient } from '../support/patient';
import { handOver, untilWaiting } from '../support/hand-over';
import { quickest, timeOf } from '../support/quickest';
import { sideBySide } from '../support/side-by-side';
import { until } from '../support/until';
import { goOn, stopProcess } from '../support/stopping';

const CLAIM_MS = 1_000;
const RECHECK_MS = 300;
/** For a machine that is busy with other things. */
const SLACK_MS = 1_500;
/** The slack where no defect that is looked for would take nearly as little. */
const LONG_SLACK_MS = 3_000;

interface World {
  readonly server: RedisServer;
  /** Between the server and `waiting`. */
  readonly proxy: TcpProxy;
  readonly locks: LockService;
  readonly waiting: LockService;
  openStore(url?: string): Promise<RedisLockStore>;
  startWaiter(key: string): Promise<Waiter>;
}

interface Waiter {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly granted: Promise<{ fence: number }>;
}

const beside = sideBySide();
/** Six tests and their processes start at the same time, and no lease ends meanwhile. */
const PATIENT = { ttl: 30_000 };

/** Gives each test what it needs of its own, so that all of them wait at the same time. */
function testInWorld(name: string, run: (world: World) => Promise<void>): void {
  beside(name, async () => {
    const server = await RedisServer.start();
    const proxy = await TcpProxy.start(server.port);
    const stores: RedisLockStore[] = [];
    const children: ChildProcess[] = [];
    const openStore = async (url = server.url): Promise<RedisLockStore> => {
      const store = new RedisLockStore(sourceOf(url));
      await store.open({ prefix: 'lock', warn: () => undefined });
      stores.push(store);
      return store;
    };
    try {
      const [locks, waiting] = [makeLocks(await openStore(), PATIENT), makeLocks(await openStore(proxy.url), PATIENT)];
      const start = (key: string): Promise<Waiter> => startChild(server, key, children);
      await run({ server, proxy, locks, waiting, openStore, startWaiter: start });
    } finally {
      for (const child of children) {
        child.kill('SIGKILL');
      }
      await Promise.all(stores.map((store) => store.close()));
      await proxy.stop();
      await server.stop();
    }
  });
}

/**
 * Another process that waits for the key; resolves once it stands in the queue, and is notified: until then it has half
 * a number.
 */
async function startChild(server: RedisServer, key: string, children: ChildProcess[]): Promise<Waiter> {
  const child = fork('test/fixtures/waiter.mjs', [server.url, key, '120000'], { execArgv: [] });
  children.push(child);
  await once(child, 'message');
  const pid = child.pid as number;
  const granted = once(child, 'message').then(([message]) => message as { fence: number });
  await until('its place', async () => {
    const places = await server.client.zrange(queueOf(key), 0, '-1', 'WITHSCORES');
    const at = places.findIndex((place) => place.includes(`:${pid}:`));
    return at >= 0 && Number(places[at + 1]) % 1 === 0;
  });
  return { child, pid, granted };
}

/** The channels where a process is notified. */
const subscribed = async ({ client }: RedisServer, pid: number): Promise<string[]> =>
  (await client.pubsub('CHANNELS', `lock:wake:*:${pid}:*`)) as string[];

const killSubscribers = ({ client }: RedisServer): Promise<unknown> => client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');

/** The connections that have subscribed, as the server knows them. */
async function subscribedIds({ client }: RedisServer): Promise<string[]> {
  const list = String(await client.call('CLIENT', 'LIST', 'TYPE', 'pubsub'));
  return [...list.matchAll(/^id=(\d+)/gm)].map(([, id]) => id as string);
}

/**
 * Plays rounds until one is in order. Only a process that stood still for the claim window, and so lost its turn, may
 * have put a round out of order: at least the claim window has passed then.
 */
async function expectInOrder(play: () => Promise<{ fences: number[]; tookMs: number }>): Promise<void> {
  for (let round = 1; ; round++) {
    const { fences, tookMs } = await play();
    const inOrder = fences.toSorted((a, b) => a - b);
    if (round === 3 || tookMs < CLAIM_MS - 50 || fences.join() === inOrder.join()) {
      expect(fences).toEqual(inOrder);
      return;
    }
  }
}

const fencesOf = (waiters: readonly Waiter[]): Promise<number[]> => Promise.all(waiters.map(async ({ granted }) => (await granted).fence));

const queueOf = (key: string): string => `lock:queue:{${key}}`;
const lockOf = (key: string): string => `lock:lock:{${key}}`;

describe('order across processes', () => {
  testInWorld('is the order of arrival, and one release wakes one process', async ({ locks, startWaiter }) => {
    await expectInOrder(async () => {
      const held = await locks.acquire('k', { wait: 120_000 });
      const waiters = [await startWaiter('k'), await startWaiter('k'), await startWaiter('k')];
      expect((await locks.operations.inspect('k'))?.waiters).toEqual(waiters.map(({ pid }) => expect.stringContaining(`(pid ${pid})`)));
      const releasedAt = performance.now();
      await held.release();
      const fences = await fencesOf(waiters);
      expect(Math.min(...fences)).toBeGreaterThan(held.fence);
      return { fences, tookMs: performance.now() - releasedAt };
    });
  });

  testInWorld('a first in the queue that was killed is skipped at once', async ({ server, locks, startWaiter }) => {
    const held = await locks.acquire('k');
    const first = await startWaiter('k');
    const second = await startWaiter('k');
    first.child.kill('SIGKILL');
    await once(first.child, 'exit');
    await until('that the server has seen its sockets close', async () => (await subscribed(server, first.pid)).length === 0);
    const { commands, stop } = await recordCommands(server);
    await held.release();
    await second.granted;
    await until('the message', () => notified(commands, second.pid) >= 0);
    stop();
    // In one script: the first, whom nobody reaches, and the second.
    const [dead, live] = [notified(commands, first.pid), notified(commands, second.pid)];
    expect(dead).toBeGreaterThan(-1);
    expect(dead).toBeLessThan(live);
    expect(commands.slice(dead, live).filter(({ source }) => source !== 'lua')).toEqual([]);
  });

  testInWorld(
    'a first in the queue that is stopped is skipped after the claim window, and queues anew when it goes on',
    async ({ locks, startWaiter }) => {
      const held = await locks.acquire('k');
      const first = await startWaiter('k');
      const second = await startWaiter('k');
      stopProcess(first.pid);
      const releasedAt = performance.now();
      await held.release();
      await second.granted;
      const tookMs = performance.now() - releasedAt;
      expect(tookMs).toBeGreaterThan(CLAIM_MS - 50);
      expect(tookMs).toBeLessThan(CLAIM_MS + RECHECK_MS + LONG_SLACK_MS);
      goOn(first.pid);
      expect((await first.granted).fence).toBeGreaterThan(0);
    },
  );

  testInWorld('a waiter that is killed with its turn reserved loses it after the claim window', async ({ server, locks, startWaiter }) => {
    const held = await locks.acquire('k');
    const first = await startWaiter('k');
    stopProcess(first.pid);
    const second = await startWaiter('k');
    const { commands, stop } = await recordCommands(server);
    const releasedAt = performance.now();
    await held.release();
    first.child.kill('SIGKILL');
    await second.granted;
    expect(performance.now() - releasedAt).toBeLessThan(CLAIM_MS + RECHECK_MS + LONG_SLACK_MS);
    // Not by a look at the lock: the turn may be over before the server comes to it.
    const isReserved = ({ args: [command, key, field, place] }: RecordedCommand): boolean =>
      command === 'HSET' && key === lockOf('k') && field === 'turn' && place?.includes(`:${first.pid}:`) === true;
    await until('that the turn was reserved for it', () => commands.some(isReserved));
    stop();
  });

  testInWorld('a lease that expires with a queue behind it goes to the first of them', async ({ server, openStore, startWaiter }) => {
    const store = patient(await openStore());
    await expectInOrder(async () => {
      const crashed = newHold('k', { ttlMs: 600_000, by: 'crashed' });
      await until('its grant', async () => (await store.acquire(crashed)).fence !== undefined);
      const waiters = [await startWaiter('k'), await startWaiter('k')];
      // Only now: on a busy machine it takes longer than a short lease until both wait.
      const endsAt = performance.now() + 700;
      await server.client.pexpire(lockOf('k'), 700);
      const fences = await fencesOf(waiters);
      return { fences, tookMs: performance.now() - endsAt };
    });
  });
});

describe('a subscription', () => {
  testInWorld(
    'that is killed is made anew, and its process asks for a turn that it may have missed',
    async ({ server, locks, waiting }) => {
      const tookMs = await quickest(RECHECK_MS + SLACK_MS, async () => {
        const held = await locks.acquire('k', { wait: 120_000 });
        const call = waiting.withLock('k', { wait: 120_000 }, () => performance.now());
        await untilWaiting(locks, 'k');
        await killSubscribers(server);
        await held.release();
        return timeOf(call);
      });
      expect(tookMs).toBeLessThan(RECHECK_MS + SLACK_MS);
      await sleep(500);
      expect(await handOver(locks, waiting)).toBeLessThan(250);
    },
  );

  testInWorld('that is killed over and over keeps nobody waiting', async ({ server, locks, waiting }) => {
    for (let round = 0; round < 10; round++) {
      const held = await locks.acquire('k');
      const call = waiting.withLock('k', { wait: 120_000 }, () => undefined);
      await sleep(20);
      await killSubscribers(server);
      await sleep(round * 10);
      await held.release();
      expect(await timeOf(call)).toBeLessThan(CLAIM_MS + RECHECK_MS + LONG_SLACK_MS);
    }
  });

  testInWorld('that is half open costs a re-check, and is made anew by its pings', async ({ server, proxy, locks, waiting }) => {
    let before: string[] | undefined;
    const tookMs = await quickest(RECHECK_MS + SLACK_MS, async () => {
      const held = await locks.acquire('k', { wait: 120_000 });
      const call = waiting.withLock('k', { wait: 120_000 }, () => undefined);
      await untilWaiting(locks, 'k');
      before = await subscribedIds(server);
      proxy.mode = 'muteSubscribers';
      await held.release();
      return timeOf(call);
    });
    expect(tookMs).toBeLessThan(RECHECK_MS + SLACK_MS);
    proxy.mode = 'pass';
    // The second ping finds that the first was not answered; the server may still have the half-open one.
    await until('a new subscription', async () => (await subscribedIds(server)).some((id) => !before?.includes(id)), 30_000);
    expect(await handOver(locks, waiting)).toBeLessThan(250);
  });

  testInWorld(
    'that is half open keeps no waiter far behind waiting: one that was skipped asks more often',
    async ({ proxy, locks, waiting, openStore }) => {
      const held = await locks.acquire('k');
      const others = await Promise.all([openStore(), openStore(), openStore()]);
      const before = others.map((store) => makeLocks(store).withLock('k', { wait: 120_000 }, () => sleep(20)));
      await untilWaiting(locks, 'k', 3);
      const call = waiting.withLock('k', { wait: 120_000 }, () => undefined);
      await untilWaiting(locks, 'k', 4);
      proxy.mode = 'muteSubscribers';
      await held.release();
      await Promise.all(before);
      expect(await timeOf(call)).toBeLessThan(2_000 + CLAIM_MS + RECHECK_MS + SLACK_MS);
    },
  );

  testInWorld('that is half open is made anew at once where its process was passed over', async (world) => {
    const { server, proxy, locks, waiting, openStore } = world;
    // One that is new is trusted for 5 s; its next ping but one, which would find out as well, is sent after 15 s.
    await sleep(5_300);
    const stores = await Promise.all([openStore(), openStore(), openStore(), openStore()]);
    const [last, ...others] = stores.map((store) => makeLocks(store, PATIENT)) as [LockService, ...LockService[]];
    const before = await subscribedIds(server);
    const isAnew = async (): Promise<boolean> => (await subscribedIds(server)).some((id) => !before.includes(id));
    // On a machine that stands still at the wrong time, the process asks by itself before it is passed over.
    for (let round = 0; round < 8 && !(await isAnew()); round++) {
      const held = await locks.acquire('k');
      const queue = others.map((other) => other.withLock('k', { wait: 120_000 }, () => sleep(20)));
      await untilWaiting(locks, 'k', 3);
      const deaf = waiting.withLock('k', { wait: 120_000 }, () => undefined);
      await untilWaiting(locks, 'k', 4);
      const behind = last.withLock('k', { wait: 120_000 }, () => undefined);
      await untilWaiting(locks, 'k', 5);
      proxy.mode = 'muteSubscribers';
      await held.release();
      await Promise.race([deaf, behind]);
      proxy.mode = 'pass';
      await Promise.all([...queue, deaf, behind]);
    }
    await until('another subscription', isAnew, 3_000);
  });

  testInWorld('a turn that comes after its waiter gave up is passed on at once', async ({ proxy, locks, waiting, openStore }) => {
    const other = makeLocks(await openStore());
    const tookMs = await quickest(CLAIM_MS - 200, async () => {
      proxy.latencyMs = 0;
      const held = await locks.acquire('k', { wait: 120_000 });
      const stop = new AbortController();
      const impatient = waiting.withLock('k', { wait: 120_000, signal: stop.signal }, () => 'granted').catch((error: Error) => error.name);
      await untilWaiting(locks, 'k');
      const behind = other.withLock('k', { wait: 120_000 }, () => performance.now());
      await untilWaiting(locks, 'k', 2);
      proxy.latencyMs = 400;
      await held.release();
      const gaveUpAt = performance.now();
      stop.abort();
      const outcome = await impatient;
      const grantedAt = await behind;
      // Where it had just asked again, it took its turn.
      return outcome === 'LockNotAcquiredError' ? grantedAt - gaveUpAt : Infinity;
    });
    expect(tookMs).toBeLessThan(CLAIM_MS - 200);
  });
});

describe('what waiting leaves behind', () => {
  testInWorld('a queue has an expiry, which each attempt refreshes', async ({ server, locks, startWaiter }) => {
    const held = await locks.acquire('k');
    await startWaiter('k');
    expect(await server.client.pttl(queueOf('k'))).toBeGreaterThan(30_000);
    await server.client.pexpire(queueOf('k'), 10_000);
    await until('the refresh', async () => (await server.client.pttl(queueOf('k'))) > 30_000);
    await held.release();
  });

  testInWorld('a queue is gone with the last of those who waited', async ({ server, locks, openStore }) => {
    const held = await locks.acquire('k');
    const other = makeLocks(patient(await openStore()));
    await expect(other.acquire('k', { wait: 50 })).rejects.toMatchObject({ reason: 'busy' });
    await held.release();
    const left = async (): Promise<string[]> => (await server.client.keys('lock:*')).filter((name) => !/^lock:(done|fence):/.test(name));
    await until('that nothing is left', async () => (await left()).length === 0);
  });
});

testInWorld(
  'an exchange within a process is one command for each caller, and a hand-over between processes three at most',
  async ({ server, locks, openStore }) => {
    const other = makeLocks(await openStore());
    const held = await locks.acquire('k');
    const callers = [locks, other].flatMap((service) =>
      Array.from({ length: 64 }, () => service.withLock('k', { wait: 120_000 }, () => undefined)),
    );
    await untilWaiting(locks, 'k');
    await server.client.config('RESETSTAT');
    await held.release();
    const rechecks = 2 * Math.ceil((await timeOf(Promise.all(callers))) / RECHECK_MS);
    const sent = (await server.commandCounts()).get('evalsha') ?? 0;
    // 8 turns of 16 callers: each caller costs one command, each turn two more.
    expect(sent).toBeLessThan(128 + 8 * 2 + 10 + rechecks);
  },
);

testInWorld('a re-entry and a ticket bypass the queue', async ({ locks, openStore, startWaiter }) => {
  await locks.withLock('k', async (lock) => {
    const waiter = await startWaiter('k');
    const guests = makeLocks(await openStore());
    expect(await locks.withLock('k', { wait: 0 }, ({ fence }) => fence)).toBe(lock.fence);
    expect(await guests.withLock('k', { ticket: lock.makeTicket(), wait: 120_000 }, ({ fence }) => fence)).toBe(lock.fence);
    void waiter.granted;
  });
});
