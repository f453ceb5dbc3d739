import 'reflect-metadata';
import { jest } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import type { HoldRecord, Place } from '../../lib/core/seam/lock-store';
import type { LockService } from '../../lib/nest/lock.service';
import { RedisSubscriber } from '../../lib/redis/connection/redis-subscriber';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { sourceOf } from '../support/redis-source';
import { until } from '../support/until';
import { makeLocks } from '../support/make-locks';
import { RedisServer } from '../support/redis-server';
import { TcpProxy } from '../support/tcp-proxy';
import { newHold } from '../support/new-hold';

const CLAIM_MS = 1_000;
const RECHECK_MS = 300;
/** How often a place far behind asks, while its process trusts its subscription. */
const SELDOM_MS = 2_000;
/** For a machine that is busy with other things. */
const SLACK_MS = 2_000;

let server: RedisServer;
let proxy: TcpProxy;
let stores: RedisLockStore[];

beforeEach(async () => {
  stores = [];
  server = await RedisServer.start();
  proxy = await TcpProxy.start(server.port);
});
afterEach(async () => {
  await Promise.all(stores.map((store) => store.close()));
  await proxy.stop();
  await server.stop();
});

/** Notes when it asked for a lock. */
class TimedStore extends RedisLockStore {
  readonly asked: number[] = [];

  override acquire(hold: HoldRecord, place?: Place): ReturnType<RedisLockStore['acquire']> {
    if (hold.key === 'k') {
      this.asked.push(performance.now());
    }
    return super.acquire(hold, place);
  }
}

async function openLocks(url = server.url, store = new RedisLockStore(sourceOf(url))): Promise<LockService> {
  await store.open({ prefix: 'lock', warn: () => undefined });
  stores.push(store);
  return makeLocks(store);
}

/** A process that wants the lock again and again. */
class Rival {
  entered = 0;
  readonly #ended: Promise<void>;
  #running = true;

  constructor(locks: LockService) {
    this.#ended = this.#contend(locks);
  }

  stop(): Promise<void> {
    this.#running = false;
    return this.#ended;
  }

  async #contend(locks: LockService): Promise<void> {
    while (this.#running) {
      await locks.withLock('k', { wait: 20_000 }, () => sleep(10));
      this.entered++;
    }
  }
}

/** Each turn comes soon, though others want the lock all the time. */
async function expectTurns(locks: LockService, count: number): Promise<void> {
  const rivals = (await Promise.all([openLocks(), openLocks(), openLocks()])).map((each) => new Rival(each));
  const waits: number[] = [];
  for (let turn = 0; turn < count; turn++) {
    const startedAt = performance.now();
    await locks.withLock('k', { ttl: 5_000, wait: 20_000 }, () => waits.push(performance.now() - startedAt));
  }
  await Promise.all(rivals.map((rival) => rival.stop()));
  expect(Math.max(...waits)).toBeLessThan(SELDOM_MS + CLAIM_MS + 2 * RECHECK_MS + SLACK_MS);
  // A stall may cost one of them a turn or two.
  expect(rivals.every(({ entered }) => entered > count / 2)).toBe(true);
}

describe('a live process is not starved by others where its own subscription', () => {
  test('is half open, and was new when that began', async () => {
    const locks = await openLocks(proxy.url);
    proxy.mode = 'muteSubscribers';
    await expectTurns(locks, 4);
  });

  test('is forbidden', async () => {
    await server.client.acl('SETUSER', 'deaf', 'reset', 'on', '>secret', '~lock:*', '&*', '+@all', '-subscribe');
    await expectTurns(await openLocks(server.url.replace('//', '//deaf:secret@')), 8);
  });

  test('is killed over and over', async () => {
    const locks = await openLocks(proxy.url);
    const killing = setInterval(() => proxy.cutSubscribers(), 30);
    await expectTurns(locks, 8).finally(() => clearInterval(killing));
  });
});

test('a place that was skipped asks often from then on, also where its subscription is too new to distrust', async () => {
  const store = new TimedStore(server.url);
  const locks = await openLocks(server.url, store);
  const held = await (await openLocks()).acquire('k', { ttl: '1m' });
  for (const name of ['first', 'second']) {
    const before = newHold('k', { owner: name, id: name, by: 'before' });
    await (stores.at(-1) as RedisLockStore).acquire(before, { name });
  }
  const call = locks.withLock('k', { wait: 20_000 }, () => 'ran');
  await until('the first look', () => store.asked.length === 1);
  await sleep(100);
  await server.client.zremrangebyrank('lock:queue:{k}', 2, 2);
  await until('six attempts', () => store.asked.length === 6);
  // The second attempt finds the place gone; a process that trusts its subscription pauses for 2 s.
  const [, passedOver = 0, , , , last = 0] = store.asked;
  expect(last - passedOver).toBeLessThan(4 * RECHECK_MS + SLACK_MS);
  expect(await server.client.zcard('lock:queue:{k}')).toBe(3);
  await server.client.zremrangebyrank('lock:queue:{k}', 0, 1);
  await held.release();
  expect(await call).toBe('ran');
});

test('a subscription that is young is trusted where a message seems to be missing, and an older one is made anew', async () => {
  const realNow = performance.now.bind(performance);
  let aheadMs = 60_000;
  const now = jest.spyOn(performance, 'now').mockImplementation(() => realNow() + aheadMs);
  const nothing = (): void => undefined;
  const subscriber = new RedisSubscriber(['own', 'everybody'], { receive: nothing, recheck: nothing }, nothing);
  try {
    await subscriber.open({ source: sourceOf(server.url) });
    await until('the subscription', () => subscriber.acknowledged);
    subscriber.distrust();
    expect(subscriber.acknowledged).toBe(true);
    aheadMs += 60_000;
    subscriber.distrust();
    expect(subscriber.acknowledged).toBe(false);
    await until('another one', () => subscriber.acknowledged);
  } finally {
    subscriber.close();
    now.mockRestore();
  }
});

test('a subscription that does not reach the server which commands have come to is made anew once, and then stays', async () => {
  const states: boolean[] = [];
  const nothing = (): void => undefined;
  const recheck = (): void => void states.push(subscriber.acknowledged);
  const subscriber: RedisSubscriber = new RedisSubscriber(['own', 'everybody'], { receive: nothing, recheck }, nothing);
  try {
    await subscriber.open({ source: sourceOf(server.url) });
    await until('the subscription', () => subscriber.acknowledged);
    subscriber.follow('elsewhere:6379');
    await until('another one', () => states.length >= 3);
    await sleep(1_000);
    expect(states).toEqual([true, false, true]);
  } finally {
    subscriber.close();
  }
});
