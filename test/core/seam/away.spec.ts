import { jest } from '@jest/globals';
import { LockConfigurationError, LockStoreError } from '../../../lib/core/words/errors';
import type { AcquireReply, HoldRecord, Place } from '../../../lib/core/seam/lock-store';
import type { LockTrouble } from '../../../lib/core/words/lock-event';
import type { LockService } from '../../../lib/nest/lock.service';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import { makeLocks, type TestSettings } from '../../support/make-locks';
import { noting } from '../../support/noting';
import { saying } from '../../support/saying';

/** How long an attempt takes to fail while the store is away, in milliseconds. */
const FAILS_AFTER_MS = 200;

/** May be away: each command then fails after a while. */
class UnsteadyStore extends MemoryLockStore {
  isAway = false;
  attempts = 0;
  /** When each attempt was sent. */
  readonly sentAt: number[] = [];

  override async acquire(hold: HoldRecord, place?: Place): Promise<AcquireReply> {
    if (hold.key !== 'nestjs-distributed-lock:health') {
      this.attempts++;
      this.sentAt.push(performance.now());
    }
    await this.#answer(hold.key);
    return super.acquire(hold, place);
  }

  override async renew(holds: readonly HoldRecord[]): Promise<boolean[]> {
    await this.#answer(holds[0]?.key ?? '');
    return super.renew(holds);
  }

  override async release(hold: HoldRecord): Promise<boolean> {
    await this.#answer(hold.key);
    return super.release(hold);
  }

  override async exchange(...passed: Parameters<MemoryLockStore['exchange']>): ReturnType<MemoryLockStore['exchange']> {
    await this.#answer(passed[0].key);
    return super.exchange(...passed);
  }

  async #answer(key: string): Promise<void> {
    if (this.isAway) {
      await new Promise((resolve) => setTimeout(resolve, FAILS_AFTER_MS));
      throw new LockStoreError(`Lock "${key}": no answer`, key, { cause: new Error('ECONNREFUSED'), unknown: true });
    }
  }
}

let store: UnsteadyStore;
let troubles: LockTrouble[];

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
  store = new UnsteadyStore();
  troubles = [];
});
afterEach(() => {
  jest.useRealTimers();
});

const serviceOf = (settings: TestSettings = {}): LockService =>
  makeLocks(store, { wait: 60_000, onTrouble: noting(troubles), ...settings });

/** How long a call took, in milliseconds, and how it ended. */
async function timed(call: Promise<unknown>): Promise<{ ms: number; outcome: unknown }> {
  const startedAt = performance.now();
  const outcome = await call.catch((error: unknown) => error);
  return { ms: performance.now() - startedAt, outcome };
}

async function ended<T>(running: Promise<T>, withinMs: number): Promise<T> {
  await jest.advanceTimersByTimeAsync(withinMs);
  return running;
}

/** A store that is known to be away. */
async function goAway(locks: LockService): Promise<void> {
  store.isAway = true;
  const { ms, outcome } = await ended(timed(locks.withLock('first', { onUnavailable: 'throw' }, () => 1)), 5_000);
  expect(outcome).toBeInstanceOf(LockStoreError);
  expect(ms).toBeLessThan(2_000);
}

describe("while the store is known to be away, with onUnavailable: 'throw'", () => {
  test('a call fails at once, and says for how long the store has not answered, and why', async () => {
    const locks = serviceOf({ onUnavailable: 'throw' });
    await goAway(locks);
    const [probe, call] = await ended(
      Promise.all([timed(locks.withLock('a', () => 1)), timed(locks.withLock('b', () => 1))]),
      FAILS_AFTER_MS,
    );
    expect(probe?.outcome).toMatchObject({ code: 'LOCK_STORE', detail: 'Lock "a": no answer' });
    expect(call?.ms).toBe(0);
    expect(call?.outcome).toMatchObject({
      code: 'LOCK_STORE',
      key: 'b',
      unknown: false,
      detail: expect.stringMatching(/"b": the store has not answered for \d+ ms.*repeat the call later/) as string,
      cause: new Error('ECONNREFUSED'),
    });
  });

  test('one call in half a second asks it, and only one', async () => {
    const locks = serviceOf({ onUnavailable: 'throw' });
    await goAway(locks);
    const before = store.attempts;
    const calls: Promise<{ ms: number }>[] = [];
    for (let at = 0; at < 100; at++) {
      calls.push(timed(locks.withLock(`k${at}`, () => 1)));
      await jest.advanceTimersByTimeAsync(50);
    }
    const times = (await Promise.all(calls)).map(({ ms }) => ms);
    expect(Math.max(...times)).toBeLessThanOrEqual(FAILS_AFTER_MS);
    expect(times.filter((ms) => ms > 0)).toHaveLength(store.attempts - before);
    expect(store.attempts - before).toBeGreaterThanOrEqual(8);
    expect(store.attempts - before).toBeLessThanOrEqual(11);
  });

  test('service resumes by the first call that asks it when it is back', async () => {
    const locks = serviceOf({ onUnavailable: 'throw' });
    await goAway(locks);
    await jest.advanceTimersByTimeAsync(1_000);
    store.isAway = false;
    expect(await locks.withLock('a', () => 'in')).toBe('in');
    expect(await Promise.all(['b', 'c', 'd'].map((key) => locks.withLock(key, () => 'in')))).toEqual(['in', 'in', 'in']);
  });

  test('a renewal that is answered does not end it where attempts fail, as on a full server', async () => {
    const locks = serviceOf({ onUnavailable: 'throw' });
    const lock = await locks.acquire('held', { ttl: 3_000 });
    const { renew } = MemoryLockStore.prototype;
    store.renew = (holds) => renew.call(store, holds) as Promise<boolean[]>;
    await goAway(locks);
    const calls = Array.from({ length: 40 }, async (_, index) => {
      await new Promise((resolve) => setTimeout(resolve, index * 100));
      return timed(locks.withLock('a', () => 1));
    });
    await jest.advanceTimersByTimeAsync(5_000);
    const times = (await Promise.all(calls)).map(({ ms }) => ms);
    expect(Math.max(...times)).toBeLessThanOrEqual(FAILS_AFTER_MS);
    expect(lock.isHeld()).toBe(true);
    expect(troubles.map(({ type }) => type)).toEqual(['storeUnavailable']);
    store.isAway = false;
    await lock.release();
  });

  test('a call that would wait behind another one of its process does not', async () => {
    const locks = serviceOf();
    await goAway(locks);
    const patient = timed(locks.withLock('k', { wait: 3_000 }, () => 1));
    const { ms, outcome } = await ended(timed(locks.withLock('k', { onUnavailable: 'throw' }, () => 1)), 0);
    expect(outcome).toBeInstanceOf(LockStoreError);
    expect(ms).toBe(0);
    expect((await ended(patient, 5_000)).ms).toBeGreaterThanOrEqual(3_000);
  });

  test('calls that wait already end with the first attempt that fails, all of them', async () => {
    const locks = serviceOf({ onUnavailable: 'throw' });
    const lock = await locks.acquire('k', { ttl: 600_000, renew: false });
    const waiting = Array.from({ length: 20 }, () => timed(locks.withLock('k', () => 1)));
    await goAway(locks);
    let left = waiting.length;
    waiting.forEach((call) => void call.then(() => left--));
    await jest.advanceTimersByTimeAsync(0);
    expect(left).toBe(20);
    void lock.release();
    await jest.advanceTimersByTimeAsync(2 * FAILS_AFTER_MS);
    expect(left).toBe(0);
    const ends = await Promise.all(waiting);
    expect(ends.map(({ outcome }) => outcome instanceof LockStoreError)).not.toContain(false);
  });

  test('a call made from inside a lock re-enters as always', async () => {
    const locks = serviceOf({ onUnavailable: 'throw' });
    let goOn!: () => void;
    const outer = locks.withLock('k', { ttl: 600_000 }, async () => {
      await new Promise<void>((resolve) => (goOn = resolve));
      return locks.withLock('k', () => 'inside');
    });
    await goAway(locks);
    goOn();
    expect(await ended(outer, 1_000)).toBe('inside');
  });

  test('service resumes within a second of its return, also where nobody called meanwhile', async () => {
    const locks = serviceOf({ onUnavailable: 'throw' });
    await goAway(locks);
    await jest.advanceTimersByTimeAsync(6_000);
    await expect(ended(Promise.all(['b', 'c'].map((key) => locks.withLock(key, () => 'in'))), FAILS_AFTER_MS)).rejects.toThrow(
      LockStoreError,
    );
    store.isAway = false;
    await jest.advanceTimersByTimeAsync(1_000 + FAILS_AFTER_MS);
    expect(await Promise.all(['b', 'c', 'd'].map((key) => locks.withLock(key, () => 'in')))).toEqual(['in', 'in', 'in']);
  });
});

test('an outage of less than a second is waited for', async () => {
  const locks = serviceOf({ onUnavailable: 'throw' });
  store.isAway = true;
  const call = timed(locks.withLock('k', () => 'in'));
  await jest.advanceTimersByTimeAsync(800);
  store.isAway = false;
  expect(await ended(call, 1_000)).toMatchObject({ outcome: 'in' });
});

test('calls wait for a store that is away where nothing else was asked for', async () => {
  const locks = serviceOf();
  store.isAway = true;
  const call = timed(locks.withLock('k', () => 'in'));
  await jest.advanceTimersByTimeAsync(30_000);
  store.isAway = false;
  expect(await ended(call, 1_000)).toMatchObject({ outcome: 'in' });
});

test('onUnavailable as a function is refused where no result is awaited of it: in acquire(), and in the module', async () => {
  const wrong = { onUnavailable: () => 1 } as never;
  await expect(serviceOf().acquire('k', wrong)).rejects.toThrow(saying(/acquire: onUnavailable is the function .*Use 'wait' or 'throw'/));
  expect(() => serviceOf(wrong)).toThrow(/LockModule: onUnavailable is the function .*Use 'wait' or 'throw'/);
});

test.each(['retry', true, null])('onUnavailable: %j is refused, in a call and in the module', async (onUnavailable) => {
  const wrong = { onUnavailable } as never;
  await expect(serviceOf().withLock('k', wrong, () => 1)).rejects.toMatchObject({ code: 'LOCK_CONFIGURATION' });
  if (onUnavailable !== null) {
    expect(() => serviceOf(wrong)).toThrow(/LockModule: onUnavailable is .* Use 'wait' or 'throw'/);
  }
});

describe('onUnavailable as a function', () => {
  /** Answers with what it was told. */
  const told = (error: { code: string; detail: string }): string => `${error.code} ${error.detail}`;

  test('answers at once while the store is known to be away, and its body never runs', async () => {
    const locks = serviceOf();
    await goAway(locks);
    let runs = 0;
    const answers = ['a', 'b'].map((key) => timed(locks.withLock(key, { onUnavailable: told }, () => `${(runs += 1)}`)));
    const [probe, call] = await ended(Promise.all(answers), FAILS_AFTER_MS);
    expect(probe?.outcome).toBe('LOCK_STORE Lock "a": no answer');
    expect([call?.ms, call?.outcome, runs]).toEqual([
      0,
      expect.stringMatching(/^LOCK_STORE Lock "b": the store has not answered for \d+ ms/) as string,
      0,
    ]);
  });

  test('answers for a call whose wait is over before the store is known to be away', async () => {
    store.isAway = true;
    const call = timed(serviceOf().withLock('k', { wait: 500, onUnavailable: told }, () => 'ran'));
    expect(await ended(call, 1_000)).toMatchObject({ outcome: expect.stringMatching(/^LOCK_STORE /) as string });
  });

  test('answers for a store that refuses every call, and not for what is wrong with one key', async () => {
    const locks = serviceOf();
    const missing = new LockConfigurationError('no rights', '', { ofStore: true });
    store.acquire = () => Promise.reject(missing);
    expect(await locks.withLock('k', { onUnavailable: told }, () => 'ran')).toBe('LOCK_CONFIGURATION no rights');
    store.acquire = () => Promise.reject(new LockConfigurationError('wrong kind', 'k'));
    await expect(locks.withLock('k', { onUnavailable: told }, () => 'ran')).rejects.toMatchObject({ detail: 'wrong kind' });
  });

  test('lets what the body throws pass, also the error of another store, and what the function throws', async () => {
    const locks = serviceOf();
    const inside = new LockStoreError('another store', 'k', { unknown: false });
    await expect(locks.withLock('k', { onUnavailable: told }, () => Promise.reject(inside))).rejects.toBe(inside);
    store.isAway = true;
    const own = new Error('its own');
    const call = timed(
      locks.withLock(
        'k',
        {
          wait: 0,
          onUnavailable: () => {
            throw own;
          },
        },
        () => 1,
      ),
    );
    expect((await ended(call, 1_000)).outcome).toBe(own);
  });

  test('does not answer for a busy lock, nor onBusy for a store that is away', async () => {
    const locks = serviceOf();
    const held = await locks.acquire('k', { renew: false, ttl: '1h' });
    const both = { wait: 0, onBusy: () => 'busy', onUnavailable: () => 'away' };
    expect(await locks.withLock('k', both, () => 'ran')).toBe('busy');
    await expect(locks.withLock('k', { wait: 0, onUnavailable: () => 'away' }, () => 'ran')).rejects.toMatchObject({ reason: 'busy' });
    await held.release();
    store.isAway = true;
    expect((await ended(timed(locks.withLock('k', both, () => 'ran')), 1_000)).outcome).toBe('away');
  });

  test("goes with onBusy: 'skip', which waits for nothing", async () => {
    const locks = serviceOf();
    const held = await locks.acquire('k', { renew: false, ttl: '1h' });
    expect(await locks.withLock('k', { onBusy: 'skip', onUnavailable: () => 'away' }, () => 'ran')).toBeUndefined();
    await held.release();
  });
});

test('a call that waits alone asks a store that is away every half a second, and no less often', async () => {
  jest.spyOn(Math, 'random').mockReturnValue(0.999);
  store.isAway = true;
  const call = serviceOf().withLock('k', () => 'in');
  await jest.advanceTimersByTimeAsync(10_000);
  jest.mocked(Math.random).mockRestore();
  store.isAway = false;
  expect(await ended(call, 1_000)).toBe('in');
  const asked = store.sentAt.filter((at) => at - (store.sentAt[0] as number) > 2_000);
  expect(new Set(asked.slice(1).map((at, index) => at - (asked[index] as number)))).toEqual(new Set([500]));
});

test('a store that answers again is told once, with the time that it was away', async () => {
  const locks = serviceOf();
  store.isAway = true;
  const call = locks.withLock('k', { by: 'Jobs.run' }, () => 1);
  await jest.advanceTimersByTimeAsync(3_000);
  store.isAway = false;
  await ended(call, 1_000);
  await locks.withLock('k', () => 1);
  expect(troubles.map(({ type }) => type)).toEqual(['storeUnavailable', 'storeAnswered']);
  const answered = troubles[1] as LockTrouble & { type: 'storeAnswered' };
  expect(answered).toMatchObject({ store: 'default', key: 'k', by: expect.stringContaining('Jobs.run') as string });
  expect(answered.awayMs).toBeGreaterThan(2_500);
  expect(answered.awayMs).toBeLessThan(3_500);
});

test('a store that fails renewals and then answers one is told too', async () => {
  const lock = await serviceOf().acquire('k', { ttl: 30_000 });
  store.isAway = true;
  await jest.advanceTimersByTimeAsync(12_000);
  store.isAway = false;
  await jest.advanceTimersByTimeAsync(3_500);
  expect(troubles.map(({ type }) => type)).toEqual(['storeUnavailable', 'storeAnswered']);
  await lock.release();
});

test('a store that says that a lock is busy has answered', async () => {
  const locks = serviceOf();
  const held = await makeLocks(store).acquire('k');
  store.isAway = true;
  expect(await ended(timed(locks.withLock('k', { wait: 0 }, () => 1)), 1_000)).toMatchObject({ outcome: { code: 'LOCK_STORE' } });
  store.isAway = false;
  expect(await locks.tryAcquire('k')).toBeNull();
  expect(troubles.map(({ type }) => type)).toEqual(['storeUnavailable', 'storeAnswered']);
  await held.release();
});

test('a call that has the lock from the call before it, without the store, is no answer of the store', async () => {
  const locks = serviceOf();
  const first = await locks.acquire('k', { ttl: 30_000 });
  const [waiting, next] = [locks.acquire('k', { ttl: 30_000 }), locks.acquire('k', { ttl: 30_000 })];
  store.isAway = true;
  const other = timed(locks.withLock('other', { wait: 0 }, () => 1));
  await jest.advanceTimersByTimeAsync(FAILS_AFTER_MS - 50);
  store.isAway = false;
  await first.release();
  const second = await waiting;
  store.isAway = true;
  expect(await ended(other, 50)).toMatchObject({ outcome: { code: 'LOCK_STORE' } });
  void second.release();
  const third = await ended(next, FAILS_AFTER_MS / 2);
  expect(third.isHeld()).toBe(true);
  expect(troubles.map(({ type }) => type)).toEqual(['storeUnavailable']);
  store.isAway = false;
  await third.release();
});

describe('while the store is known to be away, calls that wait for it', () => {
  /** Calls that wait, each for a key of its own, once the store is known to be away. */
  async function waiting(locks: LockService, wait = 60_000): Promise<Promise<{ ms: number; outcome: unknown }>[]> {
    await goAway(locks);
    return Array.from({ length: 200 }, (_, at) => timed(locks.withLock(`k${at}`, { wait }, () => 'in')));
  }

  test('send one attempt in half a second for all', async () => {
    const locks = serviceOf();
    const calls = await waiting(locks);
    await jest.advanceTimersByTimeAsync(1_000);
    const before = store.attempts;
    await jest.advanceTimersByTimeAsync(10_000);
    expect(store.attempts - before).toBeGreaterThanOrEqual(15);
    expect(store.attempts - before).toBeLessThanOrEqual(21);
    store.isAway = false;
    await jest.advanceTimersByTimeAsync(2_000);
    await Promise.all(calls);
  });

  test('do not ask at once either, where they come during the outage', async () => {
    const locks = serviceOf();
    await goAway(locks);
    const before = store.attempts;
    const calls = Array.from({ length: 200 }, (_, at) => timed(locks.withLock(`k${at}`, () => 'in')));
    await jest.advanceTimersByTimeAsync(100);
    expect(store.attempts - before).toBeLessThanOrEqual(1);
    store.isAway = false;
    await jest.advanceTimersByTimeAsync(2_000);
    await Promise.all(calls);
  });

  test('are not more than may wait', async () => {
    const locks = serviceOf({ maxWaiters: { perProcess: 2 } });
    await goAway(locks);
    const calls = Array.from({ length: 5 }, (_, at) => timed(locks.withLock(`k${at}`, () => 'in')));
    await jest.advanceTimersByTimeAsync(1_000);
    store.isAway = false;
    const ends = await ended(Promise.all(calls), 2_000);
    const refused = ends.filter(({ outcome }) => (outcome as { reason?: string }).reason === 'tooManyWaiters');
    expect(refused.length).toBeGreaterThanOrEqual(2);
    // The call that asked for all has the failure of the store.
    expect(ends.filter(({ outcome }) => outcome === 'in')).toHaveLength(2);
  });

  test('say that an attempt of their own may have been carried out, where there was one', async () => {
    const locks = serviceOf();
    store.isAway = true;
    // One whose attempts fail before the store counts as away.
    const asked = timed(locks.withLock('asked', { wait: 3_000 }, () => 'in'));
    await jest.advanceTimersByTimeAsync(2_000);
    const others = Array.from({ length: 5 }, (_, at) => timed(locks.withLock(`k${at}`, { wait: 300 }, () => 'in')));
    await jest.advanceTimersByTimeAsync(3_000);
    expect((await asked).outcome).toMatchObject({ code: 'LOCK_STORE', key: 'asked', unknown: true });
    const outcomes = (await Promise.all(others)).map(({ outcome }) => outcome as LockStoreError);
    expect(outcomes.map(({ code }) => code)).toEqual(others.map(() => 'LOCK_STORE'));
    // One of them may have asked for all.
    expect(outcomes.filter(({ unknown }) => !unknown).length).toBeGreaterThanOrEqual(4);
  });

  test('ask when they are notified of their turn', async () => {
    const locks = serviceOf();
    const holding = await makeLocks(store).acquire('k', { ttl: 60_000 });
    const queued = timed(locks.withLock('k', () => 'in'));
    await jest.advanceTimersByTimeAsync(100);
    await goAway(locks);
    await jest.advanceTimersByTimeAsync(1_600);
    store.isAway = false;
    const before = performance.now();
    await holding.release();
    const { outcome } = await ended(queued, 300);
    expect(outcome).toBe('in');
    expect(performance.now() - before).toBeLessThanOrEqual(300);
  });

  test('are woken by the first answer', async () => {
    const locks = serviceOf();
    const calls = await waiting(locks);
    await jest.advanceTimersByTimeAsync(3_000);
    const before = store.attempts;
    store.isAway = false;
    // An attempt that is on its way fails, and the next one is due within half a second.
    const ends = await ended(Promise.all(calls), 2 * FAILS_AFTER_MS + 500);
    expect(ends.map(({ outcome }) => outcome)).toEqual(calls.map(() => 'in'));
    expect(Math.max(...ends.map(({ ms }) => ms)) - Math.min(...ends.map(({ ms }) => ms))).toBeLessThan(250);
    expect(store.attempts - before).toBeLessThanOrEqual(calls.length + 2);
  });

  test('are told why, when their time is over', async () => {
    const locks = serviceOf();
    const calls = await waiting(locks, 2_000);
    const ends = await ended(Promise.all(calls), 3_000);
    expect(ends.at(-1)?.ms).toBe(2_000);
    expect(ends.at(-1)?.outcome).toMatchObject({
      code: 'LOCK_STORE',
      key: 'k199',
      unknown: false,
      detail: 'Lock "k199": no answer',
      cause: new Error('ECONNREFUSED'),
    });
  });

  test('end with their signal, and with the application', async () => {
    const locks = serviceOf();
    await goAway(locks);
    const controller = new AbortController();
    const calls = [{ signal: controller.signal }, {}].map((options, at) => timed(locks.withLock(`k${at}`, options, () => 'in')));
    await jest.advanceTimersByTimeAsync(100);
    controller.abort();
    expect((await calls[0])?.outcome).toMatchObject({ code: 'LOCK_NOT_ACQUIRED', reason: 'aborted' });
    const closing = locks.shutdown();
    expect((await ended(calls[1] as Promise<{ outcome: unknown }>, 10)).outcome).toMatchObject({
      code: 'LOCK_NOT_ACQUIRED',
      reason: 'shutdown',
    });
    store.isAway = false;
    await jest.advanceTimersByTimeAsync(5_000);
    await closing;
  });

  test('are served in order, where they want one key', async () => {
    const locks = serviceOf();
    await goAway(locks);
    const served: number[] = [];
    const calls = [0, 1, 2, 3].map((at) => locks.withLock('k', () => served.push(at)));
    await jest.advanceTimersByTimeAsync(3_000);
    expect(served).toEqual([]);
    store.isAway = false;
    await jest.advanceTimersByTimeAsync(2_000);
    await Promise.all(calls);
    expect(served).toEqual([0, 1, 2, 3]);
  });
});
