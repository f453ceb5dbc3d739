import { jest } from '@jest/globals';
import { atMost } from '../../../lib/core/seam/time';
import { TimeLimits } from '../../../lib/core/seam/time-limits';
import { LockStoreError } from '../../../lib/core/words/errors';
import type { HoldRecord } from '../../../lib/core/seam/lock-store';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import { makeLocks } from '../../support/make-locks';
import { watchRejections } from '../../support/watch-rejections';

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
  // The locks that it had taken by then are released.
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
  const store = Object.assign(new ConfirmingStore(), { keepsLimits: false });
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
  const store = Object.assign(new TooLateStore(), { keepsLimits: false });
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

describe('core stops waiting for a store', () => {
  /** A clock that tests set. */
  const clock = { now: 0, monotonic: () => clock.now, wall: () => clock.now };
  let limits: TimeLimits;

  beforeEach(() => {
    clock.now = 1_000_000;
    limits = new TimeLimits(clock);
  });

  /** Time in which timers run. */
  async function pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed++) {
      clock.now++;
      await jest.advanceTimersByTimeAsync(1);
    }
  }

  /** A call that may take so many milliseconds, the function that has the store answer it, and how it ended so far. */
  function call(limitMs: number): { answer: () => void; ended: () => string } {
    let answer!: () => void;
    let ended = 'not yet';
    limits.around(new Promise<void>((resolve) => (answer = resolve)), 'acquire', 'k', limitMs).then(
      () => (ended = 'answered'),
      (error: unknown) => (ended = error instanceof LockStoreError && error.unknown ? 'given up' : String(error)),
    );
    return { answer, ended: () => ended };
  }

  test.each([150, 200])('100 ms after its limit of %d ms', async (limitMs) => {
    const { ended } = call(limitMs);
    await pass(limitMs + 99);
    expect(ended()).toBe('not yet');
    await pass(1);
    expect(ended()).toBe('given up');
  });

  test('and takes what comes until then', async () => {
    const { answer, ended } = call(150);
    await pass(200);
    answer();
    await pass(100);
    expect(ended()).toBe('answered');
  });

  test('once an event loop that was blocked has read what was answered meanwhile, and no sooner', async () => {
    const [read, never] = [call(150), call(150)];
    clock.now += 3_000;
    await pass(50);
    expect([read.ended(), never.ended()]).toEqual(['not yet', 'not yet']);
    read.answer();
    await pass(50);
    expect([read.ended(), never.ended()]).toEqual(['answered', 'given up']);
  });

  test('in an event loop that is blocked again and again', async () => {
    const { ended } = call(150);
    for (let blocked = 0; blocked < 2; blocked++) {
      expect(ended()).toBe('not yet');
      clock.now += 3_000;
      await pass(50);
    }
    expect(ended()).toBe('given up');
  });

  test('at once where the event loop is but a little late', async () => {
    const { ended } = call(0);
    await pass(50);
    clock.now += 50;
    await pass(50);
    expect(ended()).toBe('given up');
  });

  test('with one timer for all calls', async () => {
    const calls = Array.from({ length: 20 }, () => call(150));
    expect(jest.getTimerCount()).toBe(1);
    await pass(250);
    expect(calls.map(({ ended }) => ended())).toEqual(calls.map(() => 'given up'));
    expect(jest.getTimerCount()).toBe(0);
  });
});
