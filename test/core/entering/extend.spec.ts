import { jest } from '@jest/globals';
import { LockStoreError } from '../../../lib/core/words/errors';
import type { HoldRecord } from '../../../lib/core/seam/lock-store';
import type { Clock } from '../../../lib/core/seam/time';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import { makeLocks } from '../../support/make-locks';
import { saying } from '../../support/saying';

/** Notes for how long leases are renewed, and fails or finds nothing while told to. */
class WatchedStore extends MemoryLockStore {
  readonly asked: number[] = [];
  answer: 'normal' | 'fails' | 'unknown' | 'gone' = 'normal';

  override async renew(holds: readonly HoldRecord[]): Promise<boolean[]> {
    this.asked.push(...holds.map(({ ttlMs }) => ttlMs));
    if (this.answer === 'fails') {
      throw new LockStoreError('no reply', holds[0]?.key ?? '', { unknown: true });
    }
    if (this.answer === 'unknown') {
      return holds.map(() => undefined) as never;
    }
    return this.answer === 'gone' ? holds.map(() => false) : super.renew(holds);
  }
}

/** Carries renewals out at once, and answers them half a second later. */
class LateStore extends WatchedStore {
  override async renew(holds: readonly HoldRecord[]): Promise<boolean[]> {
    const answers = await super.renew(holds);
    await new Promise((resolve) => setTimeout(resolve, 500));
    return answers;
  }
}

/** A clock whose wall clock may jump. */
class StubbedClock implements Clock {
  jump = 0;
  monotonic = (): number => performance.now();
  wall = (): number => Date.now() + this.jump;
}

/** A lease of a minute that was granted just now is trusted for at least so long. */
const MINUTE_MS = 59_000;

let store: WatchedStore;

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
  store = new WatchedStore();
});
afterEach(() => {
  jest.useRealTimers();
});

describe('lock.extend()', () => {
  test('sets a fixed lease to at least its ttl from now, in the store as well, and sends one command', async () => {
    const lock = await makeLocks(store).acquire('k', { ttl: 3_000, renew: false });
    await jest.advanceTimersByTimeAsync(2_000);
    await lock.extend('1m');
    expect(lock.remainingMs()).toBeGreaterThan(MINUTE_MS);
    expect((await store.inspect('k'))?.remainingMs).toBeGreaterThan(MINUTE_MS);
    await jest.advanceTimersByTimeAsync(50_000);
    expect([lock.isHeld(), store.asked]).toEqual([true, [60_000]]);
    await jest.advanceTimersByTimeAsync(10_000);
    expect([lock.isHeld(), lock.signal.reason]).toEqual([false, expect.objectContaining({ reason: 'expired' })]);
  });

  test('never shortens a lease', async () => {
    const lock = await makeLocks(store).acquire('k', { ttl: 60_000, renew: false });
    await lock.extend(100);
    expect(lock.remainingMs()).toBeGreaterThan(MINUTE_MS);
    expect((await store.inspect('k'))?.remainingMs).toBeGreaterThan(MINUTE_MS);
  });

  test('has a lease that is renewed renewed for as long from then on, and no more often', async () => {
    const lock = await makeLocks(store).acquire('k', { ttl: 3_000 });
    await lock.extend('1m');
    expect(lock.remainingMs()).toBeGreaterThan(MINUTE_MS);
    await jest.advanceTimersByTimeAsync(60_000);
    expect(lock.isHeld()).toBe(true);
    expect(store.asked.length).toBeLessThanOrEqual(6);
    expect(new Set(store.asked)).toEqual(new Set([60_000]));
    await lock.release();
    expect(await store.inspect('k')).toBeNull();
  });

  test('extends each key of a lock on several', async () => {
    const lock = await makeLocks(store).acquire(['a', 'b'], { ttl: 3_000, renew: false });
    await lock.extend('1m');
    expect((await store.inspect('a'))?.remainingMs).toBeGreaterThan(MINUTE_MS);
    expect((await store.inspect('b'))?.remainingMs).toBeGreaterThan(MINUTE_MS);
  });

  test('extends from a nested call the lock that it is in', async () => {
    const locks = makeLocks(store);
    const outer = await locks.acquire('k', { ttl: 3_000, renew: false });
    await outer.run(() => locks.withLock('k', (inner) => inner.extend('1m')));
    expect(outer.remainingMs()).toBeGreaterThan(MINUTE_MS);
  });

  test('leaves the next call of the process the lease that it asks for', async () => {
    const locks = makeLocks(store);
    const lock = await locks.acquire('k', { ttl: 3_000 });
    const next = locks.acquire('k', { ttl: 3_000 });
    await lock.extend('1m');
    await lock.release();
    expect((await next).remainingMs()).toBeLessThanOrEqual(3_000);
  });

  test('rejects where the store has the lock no more, and the loss is told as any other', async () => {
    const lock = await makeLocks(store).acquire('k', { ttl: 3_000, renew: false });
    store.answer = 'gone';
    await expect(lock.extend('1m')).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
    expect([lock.signal.aborted, lock.isHeld()]).toEqual([true, false]);
  });

  test.each<['fails' | 'unknown', RegExp]>([
    ['fails', /no reply/],
    ['unknown', /"k": the store could not say whether it has the lease\. Repeat the call\./],
  ])('rejects where the outcome is unknown since the store %s, and trusts what was granted before', async (answer, what) => {
    const lock = await makeLocks(store).acquire('k', { ttl: 3_000, renew: false });
    store.answer = answer;
    const extending = lock.extend('1m');
    await expect(extending).rejects.toMatchObject({ code: 'LOCK_STORE', unknown: true, key: 'k' });
    await expect(extending).rejects.toThrow(saying(what));
    expect(lock.isHeld()).toBe(true);
    expect(lock.remainingMs()).toBeLessThanOrEqual(3_000);
    store.answer = 'normal';
    await lock.extend('1m');
    expect(lock.remainingMs()).toBeGreaterThan(MINUTE_MS);
  });

  test('counts from the sending, as the server may have carried it out at once', async () => {
    store = new LateStore();
    const lock = await makeLocks(store).acquire('k', { ttl: 3_000, renew: false });
    const extending = lock.extend('10s');
    await jest.advanceTimersByTimeAsync(500);
    await extending;
    expect(lock.remainingMs()).toBeLessThanOrEqual((await store.inspect('k'))?.remainingMs as number);
  });

  test('rejects where the lease was over before the answer came, though the store has extended it', async () => {
    store = new LateStore();
    const lock = await makeLocks(store).acquire('k', { ttl: 400, renew: false });
    const extending = lock.extend('1m').catch((error: unknown) => error);
    await jest.advanceTimersByTimeAsync(1_000);
    expect(await extending).toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
    expect(lock.isHeld()).toBe(false);
    await jest.advanceTimersByTimeAsync(1_000);
    expect(await store.inspect('k')).toBeNull();
  });

  test('settles the doubt after a sleep of the machine: the store says whether it has the lock', async () => {
    const clock = new StubbedClock();
    const lock = await makeLocks(store, { clock }).acquire('k', { ttl: 3_000, renew: false });
    clock.jump = 10_000;
    expect(lock.isHeld()).toBe(false);
    await lock.extend('1m');
    expect(lock.remainingMs()).toBeGreaterThan(MINUTE_MS);
  });

  test('does not put off maxHold, and is refused once that is over', async () => {
    const lock = await makeLocks(store).acquire('k', { ttl: 3_000, maxHold: 2_000 });
    await lock.extend('1m');
    await jest.advanceTimersByTimeAsync(2_000);
    expect(lock.signal.reason).toMatchObject({ reason: 'maxHold' });
    const asked = store.asked.length;
    await expect(lock.extend('1m')).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'maxHold' });
    expect(store.asked).toHaveLength(asked);
  });

  test('is refused from a nested call too, once maxHold is over', async () => {
    const locks = makeLocks(store);
    const outer = await locks.acquire('k', { ttl: 3_000, maxHold: 2_000 });
    await jest.advanceTimersByTimeAsync(2_000);
    const asked = store.asked.length;
    const nested = outer.run(() => locks.withLock('k', (inner) => inner.extend('1m')));
    await expect(nested).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'maxHold' });
    expect(store.asked).toHaveLength(asked);
  });

  test('of a lock that is released while it is on the way rejects, and the lock is free', async () => {
    store = new LateStore();
    const lock = await makeLocks(store).acquire('k', { ttl: 3_000, renew: false });
    const extending = lock.extend('1m').catch((error: unknown) => error);
    await lock.release();
    await jest.advanceTimersByTimeAsync(500);
    expect(await extending).toMatchObject({ code: 'LOCK_LOST', reason: 'released' });
    expect(await store.inspect('k')).toBeNull();
  });

  test('that arrives after its release makes no lock, and leaves that of the next owner as it is', async () => {
    const arrives: (() => void)[] = [];
    const renew = store.renew.bind(store);
    store.renew = async (holds) => {
      await new Promise<void>((resolve) => arrives.push(resolve));
      return renew(holds);
    };
    const lock = await makeLocks(store).acquire('k', { ttl: 3_000, renew: false });
    const extending = lock.extend('1m').catch((error: unknown) => error);
    await lock.release();
    const next = await makeLocks(store).acquire('k', { ttl: 3_000, renew: false });
    arrives.forEach((arrive) => arrive());
    expect(await extending).toMatchObject({ code: 'LOCK_LOST', reason: 'released' });
    expect((await store.inspect('k'))?.remainingMs).toBeLessThanOrEqual(3_000);
    expect(next.isHeld()).toBe(true);
  });

  test('extends the lock that a ticket has entered', async () => {
    const lock = await makeLocks(store).acquire('k', { ttl: 3_000, renew: false });
    await makeLocks(store).withLock('k', { ticket: lock.makeTicket(), ttl: 3_000, renew: false }, (joined) => joined.extend('1m'));
    expect((await store.inspect('k'))?.remainingMs).toBeGreaterThan(MINUTE_MS);
  });

  test('has nothing to do where leases do not end by time', async () => {
    const renew = jest.fn<MemoryLockStore['renew']>();
    const lock = await makeLocks(Object.assign(new MemoryLockStore({ expires: false }), { renew })).acquire('k');
    await lock.extend('1m');
    expect([lock.isHeld(), renew.mock.calls]).toEqual([true, []]);
  });

  test('is refused once the lock was released, and sends nothing', async () => {
    const lock = await makeLocks(store).acquire('k', { ttl: 3_000 });
    await lock.release();
    await expect(lock.extend('1m')).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'released' });
    expect(store.asked).toEqual([]);
  });

  test('is refused where the store grants no such lease, and the lock stays as it is', async () => {
    class LimitedStore extends WatchedStore {
      readonly longestLeaseMs = 10_000;
    }
    store = new LimitedStore();
    const lock = await makeLocks(store).acquire('k', { ttl: 3_000, renew: false });
    const extending = lock.extend(10_001);
    await expect(extending).rejects.toMatchObject({ code: 'LOCK_CONFIGURATION', key: 'k' });
    await expect(extending).rejects.toThrow(saying(/a lease of 10001 ms .* longest of this store is 10000 ms\. Lower ttl, or raise/));
    expect([lock.isHeld(), store.asked]).toEqual([true, []]);
    await lock.extend(10_000);
    expect(lock.remainingMs()).toBeGreaterThan(9_000);
  });

  test.each([undefined, 0, 99, 'soon', Number.NaN])('refuses %p, which is no ttl', async (ttl) => {
    const lock = await makeLocks(store).acquire('k');
    await expect(lock.extend(ttl as number)).rejects.toThrow(saying(/^lock\.extend: ttl is .*, which is not a duration from 100 to/));
    expect(store.asked).toEqual([]);
  });
});
