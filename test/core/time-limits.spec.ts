import { jest } from '@jest/globals';
import { atMost } from '../../lib/core/seam/time';
import { LockStoreError } from '../../lib/core/words/errors';
import type { HoldRecord } from '../../lib/core/seam/lock-store';
import { MemoryLockStore } from '../../lib/stores/memory/memory-lock-store';
import { makeLocks } from '../support/make-locks';
import { watchRejections } from '../support/watch-rejections';

const REPLY_MS = 800;

/** Answers late, and rejects where that is later than it was asked for. */
class SlowStore extends MemoryLockStore {
  override async acquire(hold: HoldRecord): ReturnType<MemoryLockStore['acquire']> {
    return this.#within(hold.limitMs, hold, () => super.acquire(hold));
  }
  override async release(hold: HoldRecord): Promise<boolean> {
    return this.#within(hold.limitMs, hold, () => super.release(hold));
  }
  async #within<T>(limitMs: number, { key }: HoldRecord, run: () => Promise<T>): Promise<T> {
    await new Promise((done) => setTimeout(done, Math.min(limitMs, REPLY_MS)));
    if (limitMs < REPLY_MS) {
      throw new LockStoreError(`no reply within ${Math.round(limitMs)} ms`, key, { unknown: true });
    }
    return run();
  }
}

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
});
afterEach(() => {
  jest.useRealTimers();
});

test.each([
  [0, 1_000],
  [1_500, 2_500],
])('a call on five keys with wait: %d on a slow store ends within that and one time limit', async (wait, most) => {
  const store = new SlowStore();
  const startedAt = performance.now();
  let ended: unknown;
  const ending = makeLocks(store)
    .acquire(['a', 'b', 'c', 'd', 'e'], { ttl: 10_000, wait })
    .catch((error: unknown) => {
      ended = error;
      return performance.now();
    });
  await jest.advanceTimersByTimeAsync(most + 2);
  expect(ended).toMatchObject({ code: 'LOCK_STORE' });
  expect(((await ending) as number) - startedAt).toBeLessThanOrEqual(most + 1);
  // What it had taken by then is given back.
  await jest.advanceTimersByTimeAsync(12_000);
  expect(await Promise.all(['a', 'b', 'c', 'd', 'e'].map((key) => store.inspect(key)))).toEqual(Array.from({ length: 5 }, () => null));
});

test('a call that a store does not end is ended, in words that fit a store of the library and one of the user', async () => {
  const store = Object.assign(new MemoryLockStore(), { keepsLimits: false });
  store.acquire = () => new Promise(() => undefined);
  const failing = expect(makeLocks(store).acquire('a', { wait: 0 })).rejects.toMatchObject({
    unknown: true,
    detail: expect.stringMatching(
      /^Lock "a": the store did not answer within \d+ ms\. Find out what holds up its servers or this process\./,
    ),
  });
  await jest.advanceTimersByTimeAsync(20_000);
  await failing;
});

/** Answers to the next caller of an exchange long after the release, as a store does that confirms grants. */
class ConfirmingStore extends MemoryLockStore {
  attempts = 0;
  override async acquire(...parameters: Parameters<MemoryLockStore['acquire']>): ReturnType<MemoryLockStore['acquire']> {
    this.attempts++;
    return super.acquire(...parameters);
  }
  override async exchange(...parameters: Parameters<MemoryLockStore['exchange']>): Promise<never> {
    const { released, reply } = await super.exchange(...parameters);
    return { released, reply: new Promise((done) => setTimeout(() => done(reply), REPLY_MS)) } as never;
  }
}

test('the reply to the next caller of an exchange has the limit of that caller, not that of the lease before it', async () => {
  const store = new ConfirmingStore();
  const locks = makeLocks(store);
  const first = await locks.acquire('k', { ttl: 400 });
  const next = locks.acquire('k', { ttl: 10_000, reentry: 'never' });
  await jest.advanceTimersByTimeAsync(1);
  const attempts = store.attempts;
  await Promise.all([first.release(), jest.advanceTimersByTimeAsync(REPLY_MS + 1)]);
  const lock = await next;
  // An attempt in between would cross what the store still does for the first one.
  expect(store.attempts).toBe(attempts);
  await lock.release();
});

/** Answers an exchange when core has given it up, and finds later that the next caller has no lock. */
class TooLateStore extends MemoryLockStore {
  exchanges = 0;
  override async exchange(...[, next]: Parameters<MemoryLockStore['exchange']>): ReturnType<MemoryLockStore['exchange']> {
    this.exchanges++;
    await new Promise((done) => setTimeout(done, 3_000));
    const failure = new LockStoreError('too few replicas confirmed the grant', next.key, { unknown: false });
    const reply = new Promise<never>((_, reject) => setTimeout(() => reject(failure), 100));
    return { released: true, reply } as never;
  }
}

test('a failure of the next caller that comes when the exchange was given up ends no process', async () => {
  const reasons: unknown[] = [];
  const unwatch = watchRejections((reason) => reasons.push(reason));
  const store = new TooLateStore();
  const locks = makeLocks(store);
  const first = await locks.acquire('k', { ttl: 400 });
  const next = locks.acquire('k', { ttl: 400, reentry: 'never' });
  await jest.advanceTimersByTimeAsync(1);
  await Promise.all([first.release(), jest.advanceTimersByTimeAsync(10_000)]);
  await (await next).release();
  await new Promise(setImmediate);
  unwatch();
  expect([store.exchanges, reasons]).toEqual([1, []]);
});

test('a limit that is longer than a timer can keep is as long as a timer can keep', async () => {
  const order: string[] = [];
  const work = new Promise<void>((resolve) => setTimeout(resolve, 100)).then(() => void order.push('the work is done'));
  const waited = atMost(work, 2 ** 31).then(() => order.push('the wait is over'));
  await jest.advanceTimersByTimeAsync(100);
  await waited;
  expect(order).toEqual(['the work is done', 'the wait is over']);
});
