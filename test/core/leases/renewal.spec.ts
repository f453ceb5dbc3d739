import { jest } from '@jest/globals';
import { type Clock, leaseDeadline } from '../../../lib/core/seam/time';
import { LockStoreError } from '../../../lib/core/words/errors';
import type { Lock } from '../../../lib/core/words/lock';
import type { HoldRecord } from '../../../lib/core/seam/lock-store';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import { saying } from '../../support/saying';
import { makeLocks } from '../../support/make-locks';

/** Counts renewals, and fails them while told to. */
class WatchedStore extends MemoryLockStore {
  batches: number[] = [];
  failing = false;
  gone = false;

  override async renew(holds: readonly HoldRecord[]): Promise<boolean[]> {
    this.batches.push(holds.length);
    if (this.failing) {
      throw new LockStoreError('no reply', holds[0]?.key ?? '', { unknown: true });
    }
    return this.gone ? holds.map(() => false) : super.renew(holds);
  }
}

/** Its releases get no answer. */
class SilentStore extends WatchedStore {
  override release({ key }: HoldRecord): Promise<boolean> {
    return Promise.reject(new LockStoreError('no reply', key, { unknown: true }));
  }
}

/** Follows the fake timers, but for a wall clock that may jump and a monotonic one that may stand still. */
class StubbedClock implements Clock {
  jump = 0;
  /** For how long code has kept the event loop, in milliseconds. */
  worked = 0;
  monotonic = (): number => performance.now() + this.worked;
  wall = (): number => Date.now() + this.worked + this.jump;
}

let store: WatchedStore;
let clock: StubbedClock;

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
  store = new WatchedStore();
  clock = new StubbedClock();
});
afterEach(() => {
  jest.useRealTimers();
});

test('a deadline is counted from the sending, less 1 % and 2 ms', () => {
  expect(leaseDeadline(1_000, 5_000)).toBe(1_000 + 5_000 - 52);
});

test('a lease is renewed every third of its ttl, up to a tenth earlier', async () => {
  const lock = await makeLocks(store, { clock }).acquire('k', { ttl: 3_000 });
  await jest.advanceTimersByTimeAsync(795);
  expect(store.batches).toEqual([]);
  await jest.advanceTimersByTimeAsync(210);
  expect(store.batches).toEqual([1]);
  await jest.advanceTimersByTimeAsync(9_000);
  expect(store.batches.length).toBeGreaterThanOrEqual(9);
  expect(store.batches.length).toBeLessThanOrEqual(12);
  expect(lock.isHeld()).toBe(true);
  await lock.release();
  const sent = store.batches.length;
  await jest.advanceTimersByTimeAsync(9_000);
  expect(store.batches).toHaveLength(sent);
  expect(jest.getTimerCount()).toBe(0);
});

test('a lease whose grant took long is renewed by what is left of it', async () => {
  class LateStore extends WatchedStore {
    override acquire(...args: Parameters<WatchedStore['acquire']>): ReturnType<WatchedStore['acquire']> {
      return new Promise((resolve) => setTimeout(() => resolve(super.acquire(...args)), 140));
    }
  }
  store = new LateStore();
  // Its limit is 50 ms, and core waits for 100 ms longer.
  const acquiring = makeLocks(store, { clock }).acquire('k', { ttl: 200 });
  await jest.advanceTimersByTimeAsync(140);
  const lock = await acquiring;
  await jest.advanceTimersByTimeAsync(5);
  expect(store.batches).toEqual([1]);
  await jest.advanceTimersByTimeAsync(3_000);
  expect(lock.isHeld()).toBe(true);
  await lock.release();
});

test('leases that are due together go together, at most 128 in one command, and no command is sent half full', async () => {
  const locks = makeLocks(store, { clock });
  await Promise.all(Array.from({ length: 1_000 }, (_, index) => locks.acquire(`k${index}`, { ttl: 9_000 })));
  await jest.advanceTimersByTimeAsync(3_050);
  expect(store.batches.reduce((sum, size) => sum + size, 0)).toBeGreaterThanOrEqual(1_000);
  expect(Math.max(...store.batches)).toBeLessThanOrEqual(128);
  expect(store.batches.length).toBeLessThanOrEqual(10);
});

test('a nested call asks for more with the next renewal, and never for less', async () => {
  const locks = makeLocks(store, { clock });
  await locks.withLock('k', { ttl: 3_000 }, async (lock) => {
    await locks.withLock('k', { ttl: 60_000 }, () => expect(lock.remainingMs()).toBeLessThanOrEqual(3_000));
    await locks.withLock('k', { ttl: 100 }, () => undefined);
    await jest.advanceTimersByTimeAsync(1_050);
    expect(lock.remainingMs()).toBeGreaterThan(50_000);
  });
});

test('an unknown renewal moves nothing: it is tried again, and the old deadline stands', async () => {
  const lock = await makeLocks(store, { clock }).acquire('k', { ttl: 3_000 });
  store.failing = true;
  await jest.advanceTimersByTimeAsync(2_900);
  expect(store.batches.length).toBeGreaterThanOrEqual(5);
  expect(lock.isHeld()).toBe(true);
  await jest.advanceTimersByTimeAsync(100);
  expect(lock.isHeld()).toBe(false);
  expect(lock.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
});

test('a logger that works past the old deadline when the store answers again costs no lease that was just renewed', async () => {
  const said: string[] = [];
  const onTrouble = ({ type }: { type: string }): void => {
    said.push(type);
    // The old deadline is in 1,938 ms, and the renewal was asked for before that.
    clock.worked += type === 'storeAnswered' ? 2_000 : 0;
  };
  const lock = await makeLocks(store, { clock, onTrouble }).acquire('k', { ttl: 3_000 });
  store.failing = true;
  await jest.advanceTimersByTimeAsync(1_030);
  store.failing = false;
  await jest.advanceTimersByTimeAsync(1_000);
  expect(said).toEqual(['storeUnavailable', 'storeAnswered']);
  expect(lock.isHeld()).toBe(true);
  await jest.advanceTimersByTimeAsync(9_000);
  expect(said).toEqual(['storeUnavailable', 'storeAnswered']);
  await lock.release();
});

test('a renewal that says the lock is gone ends the lease at once, and aborts the signal once', async () => {
  const lock = await makeLocks(store, { clock }).acquire('k', { ttl: 3_000 });
  let aborts = 0;
  lock.signal.addEventListener('abort', () => aborts++);
  store.gone = true;
  await jest.advanceTimersByTimeAsync(1_050);
  expect(lock.isHeld()).toBe(false);
  await jest.advanceTimersByTimeAsync(10_000);
  expect(aborts).toBe(1);
});

test.each([
  ['forward', 3_600_000],
  ['back', -3_600_000],
])('a wall clock that jumps %s asks for a renewal at once, and nothing else', async (_, jump) => {
  const lock = await makeLocks(store, { clock }).acquire('k', { ttl: 60_000 });
  await jest.advanceTimersByTimeAsync(2_100);
  expect(store.batches).toEqual([]);
  clock.jump = jump;
  await jest.advanceTimersByTimeAsync(1_000);
  expect(store.batches).toEqual([1]);
  expect(lock.isHeld()).toBe(true);
  await jest.advanceTimersByTimeAsync(5_000);
  expect(store.batches).toEqual([1]);
});

test('a machine that slept past its lease learns at once that the lock is gone', async () => {
  const lock = await makeLocks(store, { clock }).acquire('k', { ttl: 60_000 });
  clock.jump = 120_000;
  store.gone = true;
  await jest.advanceTimersByTimeAsync(1_010);
  expect(lock.signal.reason).toMatchObject({ code: 'LOCK_LOST' });
});

test('the deadline of a grant and of a renewal is counted from the sending, not from the reply', async () => {
  const slowly = <T>(reply: Promise<T>): Promise<T> => new Promise((resolve) => setTimeout(() => resolve(reply), 500));
  let sentAt = 0;
  class SlowStore extends MemoryLockStore {
    override acquire(hold: HoldRecord): ReturnType<MemoryLockStore['acquire']> {
      sentAt = performance.now();
      return slowly(super.acquire(hold));
    }
    override renew(holds: readonly HoldRecord[]): Promise<boolean[]> {
      sentAt = performance.now();
      return slowly(super.renew(holds));
    }
  }
  const acquiring = makeLocks(new SlowStore(), { clock }).acquire('k', { ttl: 9_000 });
  await jest.advanceTimersByTimeAsync(500);
  const lock = await acquiring;
  expect(lock.remainingMs()).toBeCloseTo(leaseDeadline(sentAt, 9_000) - performance.now());
  await jest.advanceTimersByTimeAsync(3_600);
  expect(sentAt).toBeGreaterThan(2_000);
  expect(lock.remainingMs()).toBeCloseTo(leaseDeadline(sentAt, 9_000) - performance.now());
  await lock.release();
});

test('leases that are nearly due go along: many need few commands', async () => {
  const locks = makeLocks(store, { clock });
  await Promise.all(Array.from({ length: 1_000 }, (_, index) => locks.acquire(`k${index}`, { ttl: 9_000 })));
  await jest.advanceTimersByTimeAsync(3_050);
  expect(store.batches.length).toBeLessThanOrEqual(12);
});

test('a wall clock that goes forward by less than is left changes nothing', async () => {
  const lock = await makeLocks(store, { clock }).acquire('k', { ttl: 60_000 });
  clock.jump = 50_000;
  expect(lock.isHeld()).toBe(true);
  expect(lock.remainingMs()).toBeLessThan(10_000);
  await lock.release();
});

test('a wall clock that goes past the end of a lease: it is trusted again when it was renewed', async () => {
  const locks = makeLocks(store, { clock });
  const lock = await locks.acquire('k', { ttl: 60_000 });
  const { signal } = lock;
  clock.jump = 120_000;
  expect(lock.isHeld()).toBe(false);
  expect(lock.remainingMs()).toBe(0);
  expect(() => lock.assertHeld()).toThrow(saying(/cannot be trusted at this moment/));
  expect(() => lock.run(() => undefined)).toThrow(saying(/cannot be trusted at this moment/));
  expect(signal.aborted).toBe(false);
  await jest.advanceTimersByTimeAsync(1_100);
  expect(lock.isHeld()).toBe(true);
  expect(lock.remainingMs()).toBeGreaterThan(58_000);
  await expect(lock.run(() => locks.tryAcquire('k'))).resolves.not.toBeNull();
  await lock.release();
});

test.each([
  ['that is fixed', { renew: false }],
  ['whose maxHold is over', { maxHold: 100 }],
])('a lease %s is not trusted past its end on the server, however long the machine slept', async (_, options) => {
  const lock = await makeLocks(store, { clock }).acquire('k', { ttl: 30_000, ...options });
  await jest.advanceTimersByTimeAsync(200);
  const endsAt = clock.wall() + lock.remainingMs();
  // The monotonic clock stands still; what the store answers then lengthens nothing.
  clock.jump = 15_000;
  await jest.advanceTimersByTimeAsync(1_100);
  expect(store.batches).toEqual([1]);
  expect(lock.isHeld()).toBe(true);
  await jest.advanceTimersByTimeAsync(endsAt - clock.wall() + 2);
  expect(lock.isHeld()).toBe(false);
});

test('a machine that slept past its lease and wakes without a network trusts nothing', async () => {
  const locks = makeLocks(store, { clock });
  const lock = await locks.acquire('k', { ttl: 10_000 });
  clock.jump = 60_000;
  store.failing = true;
  for (let ms = 0; ms < 9_000; ms += 500) {
    await jest.advanceTimersByTimeAsync(500);
    expect(lock.isHeld()).toBe(false);
    expect(() => lock.run(() => locks.tryAcquire('k'))).toThrow(saying(/cannot be trusted at this moment/));
  }
  await jest.advanceTimersByTimeAsync(1_000);
  expect(lock.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
});

describe('a call whose code ends while its lease is doubted', () => {
  const sleepInside = (nested: boolean): Promise<unknown> => {
    const locks = makeLocks(store, { clock });
    const slept = async (): Promise<string> => {
      await jest.advanceTimersByTimeAsync(5);
      clock.jump = 60_000;
      return 'done';
    };
    return locks.withLock('k', { ttl: 10_000 }, () => (nested ? locks.withLock('k', slept) : slept()));
  };

  test.each([true, false])('has lost nothing where the store still has the lock (nested: %p)', async (nested) => {
    expect(await sleepInside(nested)).toBe('done');
    expect(store.batches).toEqual([1]);
  });

  test('asks for the lock on each of its keys, and is lost where one is gone', async () => {
    const locks = makeLocks(store, { clock });
    const sleepInBoth = (gone: boolean): Promise<unknown> =>
      locks.withLock(['a', 'b'], { ttl: 10_000 }, () => {
        clock.jump += 60_000;
        store.gone = gone;
        return 'done';
      });
    expect(await sleepInBoth(false)).toBe('done');
    expect(store.batches).toEqual([1, 1]);
    await expect(sleepInBoth(true)).rejects.toMatchObject({ code: 'LOCK_LOST' });
  });

  test.each([true, false])('is lost where the store no longer has the lock (nested: %p)', async (nested) => {
    store.gone = true;
    await expect(sleepInside(nested)).rejects.toMatchObject({ code: 'LOCK_LOST' });
  });

  test.each([true, false])('is lost where the store does not answer until the deadline (nested: %p)', async (nested) => {
    store.failing = true;
    const call = expect(sleepInside(nested)).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
    await jest.advanceTimersByTimeAsync(100_000);
    await call;
  });
});

test('a grant that was on its way while the machine slept is none', async () => {
  let asleep = true;
  let attempts = 0;
  class SleptStore extends WatchedStore {
    override async acquire(...args: Parameters<WatchedStore['acquire']>): ReturnType<WatchedStore['acquire']> {
      attempts++;
      clock.jump += asleep ? 6_000 : 0;
      return super.acquire(...args);
    }
  }
  const acquiring = makeLocks(new SleptStore(), { clock }).acquire('k', { ttl: 5_000, wait: 2_000 });
  await jest.advanceTimersByTimeAsync(10);
  asleep = false;
  await jest.advanceTimersByTimeAsync(500);
  expect((await acquiring).isHeld()).toBe(true);
  expect(attempts).toBe(2);
});

test('a nested call that asks for much more puts off no repetition of a renewal that failed', async () => {
  const limits: (number | undefined)[] = [];
  const locks = makeLocks(store, { clock });
  const renew = store.renew.bind(store);
  store.renew = (holds) => {
    limits.push(holds[0]?.limitMs);
    return renew(holds);
  };
  await locks.withLock('k', { ttl: 1_000 }, async (lock) => {
    await locks.withLock('k', { ttl: 30_000 }, () => undefined);
    store.failing = true;
    await jest.advanceTimersByTimeAsync(340);
    store.failing = false;
    await jest.advanceTimersByTimeAsync(110);
    expect(lock.remainingMs()).toBeGreaterThan(25_000);
  });
  expect(limits.slice(0, 2)).toEqual([250, 250]);
});

test('a minHold that is longer than the lease is asked for again soon where its renewal failed', async () => {
  const locks = makeLocks(store, { clock });
  await locks.withLock('k', { ttl: 1_000, minHold: 12_000 }, () => {
    store.failing = true;
  });
  await jest.advanceTimersByTimeAsync(200);
  store.failing = false;
  for (let ms = 200; ms < 11_900; ms += 100) {
    await jest.advanceTimersByTimeAsync(100);
    expect(await store.inspect('k')).not.toBeNull();
  }
  await jest.advanceTimersByTimeAsync(200);
  expect(await store.inspect('k')).toBeNull();
});

test('a process that ends within minHold leaves the lock taken for just that long', async () => {
  const locks = makeLocks(store, { clock });
  await locks.withLock('k', { ttl: 60_000, minHold: 500 }, () => undefined);
  await jest.advanceTimersByTimeAsync(100);
  // As after a crash: nobody is there to release it.
  expect((await store.inspect('k'))?.remainingMs).toBeLessThanOrEqual(410);
  store.close = async () => undefined;
  await locks.shutdown();
  expect((await store.inspect('k'))?.remainingMs).toBeLessThanOrEqual(410);
  await jest.advanceTimersByTimeAsync(410);
  expect(await store.inspect('k')).toBeNull();
});

test('a minHold is told to the store also where a renewal was on its way when the code ended', async () => {
  let answer: (() => void) | undefined;
  const renew = store.renew.bind(store);
  const locks = makeLocks(store, { clock });
  await locks.withLock('k', { ttl: 30_000, minHold: 12_000 }, async () => {
    store.renew = (holds) => renew(holds).then((held) => new Promise((resolve) => (answer = () => resolve(held))));
    await jest.advanceTimersByTimeAsync(10_000);
    store.renew = renew;
  });
  answer?.();
  await jest.advanceTimersByTimeAsync(50);
  expect((await store.inspect('k'))?.remainingMs).toBeLessThanOrEqual(2_200);
});

test('a minHold whose lease ran out keeps no timer busy', async () => {
  let wakes = 0;
  const counting: Clock = { monotonic: clock.monotonic, wall: () => (wakes++, clock.wall()) };
  const locks = makeLocks(store, { clock: counting });
  await locks.withLock('k', { ttl: 1_000, minHold: 60_000 }, () => {
    store.failing = true;
  });
  await jest.advanceTimersByTimeAsync(2_000);
  wakes = 0;
  await jest.advanceTimersByTimeAsync(10_000);
  expect(wakes).toBeLessThan(50);
});

test('a minHold does not shorten the lease of those who are in by a ticket', async () => {
  const locks = makeLocks(store, { clock });
  const other = makeLocks(store, { clock });
  let ticket = '';
  let guest: Lock | undefined;
  await locks.withLock('k', { ttl: 60_000, minHold: 500 }, async (lock) => {
    ticket = lock.makeTicket();
    guest = await other.acquire('k', { ttl: 60_000, ticket });
  });
  await jest.advanceTimersByTimeAsync(100);
  expect((await store.inspect('k'))?.remainingMs).toBeGreaterThan(50_000);
  await guest?.release();
});

test('a listener that works for most of a lease costs no other lock anything', async () => {
  const locks = makeLocks(store, { clock });
  const first = await locks.acquire('first', { ttl: 800, renew: false });
  const others = await Promise.all(Array.from({ length: 6 }, (_, index) => locks.acquire(`k${index}`, { ttl: 1_000 })));
  const last = await locks.acquire('last', { ttl: 900, renew: false });
  let toldAt = 0;
  last.signal.addEventListener('abort', () => (toldAt = performance.now()));
  let busyUntil = 0;
  first.signal.addEventListener('abort', () => {
    // Seen by all clocks, as a busy loop is.
    jest.setSystemTime(Date.now() + 700);
    ahead += 700;
    busyUntil = performance.now();
  });
  let ahead = 0;
  clock.monotonic = () => performance.now() + ahead;
  await jest.advanceTimersByTimeAsync(791);
  expect(busyUntil).toBeGreaterThan(0);
  await jest.advanceTimersByTimeAsync(5);
  expect(toldAt).toBeGreaterThan(0);
  expect(others.map((lock) => lock.isHeld())).toEqual(others.map(() => true));
  await jest.advanceTimersByTimeAsync(2_000);
  expect(others.map((lock) => lock.isHeld())).toEqual(others.map(() => true));
  await Promise.all(others.map((lock) => lock.release()));
});

test('a release is sent for a lease that is lost, in case the record lives', async () => {
  const lock = await makeLocks(store, { clock }).acquire('k', { ttl: 3_000 });
  store.gone = true;
  await jest.advanceTimersByTimeAsync(1_050);
  expect(lock.isHeld()).toBe(false);
  expect(await store.inspect('k')).toBeNull();
});

test('a renewal that is answered after the release loses nothing', async () => {
  const troubles: string[] = [];
  let answer: ((held: boolean[]) => void) | undefined;
  store.renew = () => new Promise((resolve) => (answer = resolve));
  const locks = makeLocks(store, { clock, onTrouble: ({ type }) => troubles.push(type) });
  const lock = await locks.acquire('k', { ttl: 3_000 });
  await jest.advanceTimersByTimeAsync(1_050);
  await lock.release();
  const next = await locks.acquire('k');
  answer?.([false]);
  await jest.advanceTimersByTimeAsync(10);
  expect(troubles).toEqual([]);
  expect(await locks.tryAcquire('k')).toBeNull();
  await next.release();
});

test('a renewal that is on its way when maxHold is over is the last one, and the lease ends', async () => {
  let answer: (() => void) | undefined;
  const renew = store.renew.bind(store);
  store.renew = (holds) => renew(holds).then((held) => new Promise((resolve) => (answer = () => resolve(held))));
  const lock = await makeLocks(store, { clock }).acquire('k', { ttl: 300, maxHold: 110 });
  await jest.advanceTimersByTimeAsync(115);
  expect(store.batches).toEqual([1]);
  expect(lock.signal.reason).toMatchObject({ reason: 'maxHold' });
  answer?.();
  await jest.advanceTimersByTimeAsync(400);
  expect(lock.isHeld()).toBe(false);
  expect(store.batches).toEqual([1]);
});

test('a body that ends past its lease by its own clock is lost, though the record still lives', async () => {
  let ahead = 0;
  const locks = makeLocks(store, { clock: { monotonic: () => performance.now() + ahead, wall: clock.wall } });
  const call = locks.withLock('k', { ttl: 3_000 }, () => {
    ahead = 2_990;
  });
  await expect(call).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
});

test('calls of which each outlives the one that made it do not grow a chain', async () => {
  const locks = makeLocks(store, { clock });
  let deepest = 0;
  const step = async (left: number, maker: Promise<unknown>): Promise<void> => {
    let next: Promise<void> | undefined;
    const own: Promise<void> = locks.withLock('k', async (lock) => {
      await maker;
      let depth = 0;
      for (let frame = lock as unknown as { parent?: never } | undefined; frame; frame = frame.parent) {
        depth++;
      }
      deepest = Math.max(deepest, depth);
      next = left > 0 ? step(left - 1, own) : undefined;
    });
    await own;
    await next;
  };
  await step(50, Promise.resolve());
  expect(deepest).toBeLessThanOrEqual(2);
});

test('code that has seen that its lease is over never sees it held again, though a renewal in time is answered then', async () => {
  let ahead = 0;
  const locks = makeLocks(store, { clock: { monotonic: () => performance.now() + ahead, wall: () => clock.wall() + ahead } });
  const renew = store.renew.bind(store);
  let answer: (() => void) | undefined;
  store.renew = (holds) => renew(holds).then((held) => new Promise((resolve) => (answer = () => resolve(held))));
  const seen: boolean[] = [];
  const call = locks.withLock('k', { ttl: 3_000 }, async (lock) => {
    await jest.advanceTimersByTimeAsync(1_050);
    // The event loop is blocked past the deadline, and the answer lies unread.
    ahead = 2_000;
    seen.push(lock.isHeld());
    answer?.();
    for (let turn = 0; turn < 20; turn++) {
      await Promise.resolve();
    }
    seen.push(lock.isHeld());
  });
  await expect(call).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
  expect(seen).toEqual([false, false]);
});

test('a nested call that asks for more while a renewal is on its way does not put the next one off', async () => {
  let answer: ((held: boolean[]) => void) | undefined;
  const renew = store.renew.bind(store);
  const locks = makeLocks(store, { clock });
  await locks.withLock('k', { ttl: 300 }, async (lock) => {
    store.renew = (holds) => renew(holds).then((held) => new Promise((resolve) => (answer = () => resolve(held))));
    await jest.advanceTimersByTimeAsync(105);
    store.renew = renew;
    await locks.withLock('k', { ttl: 60_000 }, () => answer?.([true]));
    await jest.advanceTimersByTimeAsync(1_000);
    expect(lock.remainingMs()).toBeGreaterThan(50_000);
  });
});

test.each(['release', Symbol.asyncDispose] as const)(
  'a handle whose lease ended while nothing could run tells so when it is given back by %p, answered or not',
  async (giveBack) => {
    const lock = await makeLocks(new SilentStore(), { clock }).acquire('k', { ttl: 1_000 });
    const { signal } = lock;
    clock.monotonic = () => performance.now() + 2_000;
    const given = lock[giveBack]();
    expect(signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
    await given;
  },
);

test('a renewal that was on its way as the wall clock jumped is repeated at once, since its answer tells nothing of now', async () => {
  let answer: (() => void) | undefined;
  const renew = store.renew.bind(store);
  const lock = await makeLocks(store, { clock }).acquire('k', { ttl: 60_000 });
  store.renew = async (holds) => {
    const answers = await renew(holds);
    if (store.batches.length === 1) {
      await new Promise<void>((resolve) => {
        answer = resolve;
      });
    }
    return answers;
  };
  await jest.advanceTimersByTimeAsync(20_100);
  expect(store.batches).toEqual([1]);
  clock.jump = 120_000;
  await jest.advanceTimersByTimeAsync(1_000);
  answer?.();
  await jest.advanceTimersByTimeAsync(100);
  expect(store.batches).toEqual([1, 1]);
  expect(lock.isHeld()).toBe(true);
  await lock.release();
});

test('a call whose process was busy as its wait ended is busy, and not the store away', async () => {
  const holder = await makeLocks(store, { clock }).acquire('k', { ttl: 60_000 });
  const waiting = makeLocks(store, { clock }).withLock('k', { ttl: 1_000, wait: 2_000, onBusy: 'skip' }, () => 'ran');
  const failing = makeLocks(store, { clock })
    .withLock('k', { ttl: 1_000, wait: 2_000 }, () => 'ran')
    .catch((error: unknown) => error);
  await jest.advanceTimersByTimeAsync(1_900);
  clock.worked += 900;
  await jest.advanceTimersByTimeAsync(1_000);
  expect(await waiting).toBeUndefined();
  expect(await failing).toMatchObject({ reason: 'busy' });
  await holder.release();
});
