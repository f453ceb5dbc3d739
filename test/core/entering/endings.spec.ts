import { jest } from '@jest/globals';
import { setImmediate as turn } from 'node:timers/promises';
import { LockLostError } from '../../../lib/core/words/errors';
import type { Lock } from '../../../lib/core/words/lock';
import type { LockTrouble } from '../../../lib/core/words/lock-event';
import { currentLock } from '../../../lib/nest/current-lock';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import { makeLocks } from '../../support/make-locks';
import { noting } from '../../support/noting';

const forever = (): Promise<never> => new Promise(() => undefined);

/** How a call ended so far: its error, its result, or `'pending'`. */
function watch(call: Promise<unknown>): { outcome: unknown } {
  const seen: { outcome: unknown } = { outcome: 'pending' };
  call.then(
    (result) => (seen.outcome = result),
    (error: unknown) => (seen.outcome = error),
  );
  return seen;
}

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
});
afterEach(() => {
  jest.useRealTimers();
});

describe('a body that goes on after its lease is lost', () => {
  const ttl = 5_000;
  let store: MemoryLockStore;
  let troubles: LockTrouble[];

  beforeEach(() => {
    store = new MemoryLockStore();
    troubles = [];
  });

  const locksOf = (own = store) => makeLocks(own, { onTrouble: noting(troubles) });
  const lose = async (key: string): Promise<void> => {
    await store.forceRelease(key, (await store.inspect(key))?.fence ?? 0);
  };

  test('and never settles: the call rejects one ttl after the code was told, and says that the body still runs', async () => {
    const seen = watch(locksOf().withLock('k', { ttl }, forever));
    await jest.advanceTimersByTimeAsync(10);
    await lose('k');
    await jest.advanceTimersByTimeAsync(ttl - 10);
    expect(seen.outcome).toBe('pending');
    await jest.advanceTimersByTimeAsync(20);
    expect(seen.outcome).toBeInstanceOf(LockLostError);
    expect(seen.outcome).toMatchObject({
      reason: 'forced',
      bodyRuns: true,
      detail: expect.stringMatching(/"k".*still runs 5000 ms after its signal aborted.*lock\.signal/) as string,
    });
  });

  test('is waited for, so that a call that rejects in time has no body any more', async () => {
    const seen = watch(
      locksOf().withLock('k', { ttl }, async (lock) => {
        await new Promise((resolve) => lock.signal.addEventListener('abort', resolve));
        await new Promise((resolve) => setTimeout(resolve, ttl - 10));
      }),
    );
    await jest.advanceTimersByTimeAsync(10);
    await lose('k');
    await jest.advanceTimersByTimeAsync(ttl - 20);
    expect(seen.outcome).toBe('pending');
    await jest.advanceTimersByTimeAsync(11);
    expect(seen.outcome).toMatchObject({ code: 'LOCK_LOST', reason: 'forced', bodyRuns: false });
    expect(jest.getTimerCount()).toBe(0);
  });

  test('has a second at least, however short its ttl is', async () => {
    const seen = watch(locksOf().withLock('k', { ttl: 100 }, forever));
    await jest.advanceTimersByTimeAsync(10);
    await lose('k');
    await jest.advanceTimersByTimeAsync(900);
    expect(seen.outcome).toBe('pending');
    await jest.advanceTimersByTimeAsync(200);
    expect(seen.outcome).toMatchObject({ bodyRuns: true });
  });

  test('past its maxHold: its ttl counts from when it was told, so the call rejects when the lease has run out', async () => {
    const seen = watch(locksOf().withLock('k', { ttl, maxHold: 60_000 }, forever));
    await jest.advanceTimersByTimeAsync(60_000 + ttl - 100);
    expect(seen.outcome).toBe('pending');
    await jest.advanceTimersByTimeAsync(200);
    expect(seen.outcome).toMatchObject({ reason: 'maxHold', bodyRuns: true });
  });

  test('past its maxHold: a call that enters it later is told as well, and is waited for no longer', async () => {
    const told: unknown[] = [];
    let inner: { outcome: unknown } | undefined;
    const locks = locksOf();
    const seen = watch(
      locks.withLock('k', { ttl, maxHold: 1_000 }, async () => {
        await new Promise((resolve) => setTimeout(resolve, 2_000));
        const call = locks.withLock('k', (lock) => {
          told.push(lock.signal.reason);
          return forever();
        });
        inner = watch(call);
        return forever();
      }),
    );
    await jest.advanceTimersByTimeAsync(2_010);
    expect(told).toMatchObject([{ reason: 'maxHold' }]);
    await jest.advanceTimersByTimeAsync(ttl);
    expect([seen.outcome, inner?.outcome]).toMatchObject([{ reason: 'maxHold' }, { reason: 'maxHold', bodyRuns: true }]);
  });

  test('past its maxHold, and ends before the lease has run out, succeeds', async () => {
    const call = locksOf().withLock('k', { ttl, maxHold: 1_000 }, async () => {
      await new Promise((resolve) => setTimeout(resolve, 2_000));
      return 'done';
    });
    await jest.advanceTimersByTimeAsync(2_000);
    expect(await call).toBe('done');
    // The timer of the store's time limits ends by itself.
    await jest.advanceTimersByTimeAsync(100);
    expect(jest.getTimerCount()).toBe(0);
  });

  test('keeps the other keys of the call until it ends', async () => {
    const locks = locksOf();
    let end!: () => void;
    const seen = watch(locks.withLock(['a', 'b'], { ttl }, () => new Promise<void>((resolve) => (end = resolve))));
    await jest.advanceTimersByTimeAsync(10);
    await lose('a');
    await jest.advanceTimersByTimeAsync(2 * ttl);
    expect(seen.outcome).toMatchObject({ bodyRuns: true });
    expect(await locks.tryAcquire('b')).toBeNull();
    end();
    await turn();
    expect(await locks.tryAcquire('b')).not.toBeNull();
  });

  test('is inside its lost lock for as long as it runs: what it calls is lost too, and acquires nothing', async () => {
    const locks = locksOf();
    let goOn!: () => void;
    let nested: unknown;
    const seen = watch(
      locks.withLock('k', { ttl }, async () => {
        await new Promise<void>((resolve) => (goOn = resolve));
        nested = await locks.withLock('k', () => 'entered').catch((error: unknown) => error);
      }),
    );
    await jest.advanceTimersByTimeAsync(10);
    await lose('k');
    await jest.advanceTimersByTimeAsync(ttl + 10);
    expect(seen.outcome).toMatchObject({ bodyRuns: true });
    goOn();
    await turn();
    expect(nested).toBeInstanceOf(LockLostError);
  });

  test.each([
    ['returns', undefined],
    ['throws', new Error('too late')],
  ])('and %s after its call has rejected: an event tells how it ended', async (_, failure) => {
    const seen = watch(
      locksOf().withLock('k', { ttl, by: 'Jobs.hangs' }, async () => {
        await new Promise((resolve) => setTimeout(resolve, 10 * ttl));
        if (failure) {
          throw failure;
        }
      }),
    );
    await jest.advanceTimersByTimeAsync(10);
    await lose('k');
    await jest.advanceTimersByTimeAsync(9 * ttl);
    expect(seen.outcome).toMatchObject({ bodyRuns: true });
    expect(troubles.map(({ type }) => type)).toEqual(['lost']);
    await jest.advanceTimersByTimeAsync(2 * ttl);
    expect(troubles.at(-1)).toMatchObject({
      type: 'endedLate',
      key: 'k',
      by: expect.stringContaining('Jobs.hangs') as string,
      thrown: failure,
    });
  });

  test.each<[string, (lock: Lock) => void]>([
    ['the reason of its signal', (lock) => lock.signal.throwIfAborted()],
    ['what assertHeld() throws', (lock) => lock.assertHeld()],
  ])('past its maxHold, and throws %s after its call has rejected: it ended late, with no error of its own', async (_, end) => {
    const seen = watch(
      locksOf().withLock('k', { ttl, maxHold: 1_000 }, async (lock) => {
        expect(lock.signal.aborted).toBe(false);
        await new Promise((resolve) => setTimeout(resolve, 10 * ttl));
        end(lock);
      }),
    );
    await jest.advanceTimersByTimeAsync(11 * ttl);
    expect(seen.outcome).toMatchObject({ reason: 'maxHold', bodyRuns: true });
    expect(troubles.at(-1)).toMatchObject({ type: 'endedLate', key: 'k', thrown: undefined });
  });

  test('at shutdown rejects its call as any other', async () => {
    const locks = locksOf();
    const seen = watch(locks.withLock('k', { ttl }, forever));
    await jest.advanceTimersByTimeAsync(10);
    await locks.shutdown();
    await jest.advanceTimersByTimeAsync(ttl);
    expect(seen.outcome).toMatchObject({ reason: 'shutdown', bodyRuns: true });
  });
});

describe('lock.run()', () => {
  /** As a query builder: each `then` runs the query. */
  class Query implements PromiseLike<string | undefined> {
    runs = 0;
    // oxlint-disable-next-line no-thenable -- as query builders are
    then<R>(resolve?: ((value: string | undefined) => R | PromiseLike<R>) | null): PromiseLike<R> {
      this.runs++;
      return Promise.resolve(currentLock()?.keys[0]).then(resolve) as PromiseLike<R>;
    }
  }

  test('runs a lazy thenable inside the lock, and once', async () => {
    const lock = await makeLocks(new MemoryLockStore()).acquire('k');
    const query = new Query();
    const result: Promise<string | undefined> = lock.run(() => query);
    expect(await result).toBe('k');
    await result;
    expect(query.runs).toBe(1);
    await lock.release();
  });

  test('counts a thenable as running until it has settled', async () => {
    const locks = makeLocks(new MemoryLockStore());
    const lock: Lock = await locks.acquire('k');
    let nested: Promise<unknown> | undefined;
    const lazy: PromiseLike<void> = {
      // oxlint-disable-next-line no-thenable -- as query builders are
      then: (resolve) =>
        turn()
          .then(() => (nested = locks.withLock('k', () => 're-entered').catch((error: unknown) => error)))
          .then(resolve as never),
    };
    const running = lock.run(() => lazy);
    await lock.release();
    await running;
    expect(await nested).toBeInstanceOf(LockLostError);
  });

  test('hands back what is no thenable as it is', async () => {
    const lock = await makeLocks(new MemoryLockStore()).acquire('k');
    // oxlint-disable-next-line no-thenable -- a JSON schema has one
    const value = { then: 'not a function' };
    expect(lock.run(() => value)).toBe(value);
    const promise = Promise.resolve(1);
    expect(lock.run(() => promise)).toBe(promise);
    await lock.release();
  });
});

test('a body that throws past its lease has lost it, also where its minHold is not over', async () => {
  let blockedMs = 0;
  const clock = { monotonic: () => performance.now() + blockedMs, wall: () => Date.now() + blockedMs };
  const troubles: LockTrouble[] = [];
  const locks = makeLocks(new MemoryLockStore(), { clock, onTrouble: noting(troubles) });
  const failing = locks.withLock('k', { ttl: 1_000, minHold: 10_000 }, () => {
    blockedMs = 3_000;
    throw new Error('the body');
  });
  await expect(failing).rejects.toThrow('the body');
  expect(troubles).toEqual([expect.objectContaining({ type: 'lost', key: 'k', reason: 'expired' })]);
});

test('a shutdown does not lose what a listener of another loss has released', async () => {
  const troubles: LockTrouble[] = [];
  const locks = makeLocks(new MemoryLockStore(), { onTrouble: noting(troubles) });
  const lock = await locks.acquire(['a', 'b']);
  lock.signal.addEventListener('abort', () => void lock.release());
  await locks.shutdown();
  expect(troubles).toEqual([expect.objectContaining({ type: 'lost', key: 'a', reason: 'shutdown' })]);
});

test('a call whose body throws rejects once its lock is released', async () => {
  const store = new MemoryLockStore();
  let isReleased = false;
  store.release = async (hold) => {
    await new Promise((resolve) => setTimeout(resolve, 500));
    isReleased = await MemoryLockStore.prototype.release.call(store, hold);
    return isReleased;
  };
  const own = new Error('its own');
  const seen = watch(makeLocks(store).withLock('k', () => Promise.reject(own)));
  await jest.advanceTimersByTimeAsync(400);
  expect(seen.outcome).toBe('pending');
  await jest.advanceTimersByTimeAsync(200);
  expect([seen.outcome, isReleased]).toEqual([own, true]);
});
