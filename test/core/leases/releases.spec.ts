import { jest } from '@jest/globals';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Clock } from '../../../lib/core/seam/time';
import type { HoldRecord } from '../../../lib/core/seam/lock-store';
import { LockLostError, LockStoreError } from '../../../lib/core/words/errors';
import { LOCK_CHANNEL, type LockEvent } from '../../../lib/core/words/lock-event';
import { TransactionScope } from '../../../lib/core/transactions/transaction-scope';
import type { LockTrouble } from '../../../lib/core/words/lock-event';
import type { LockService } from '../../../lib/nest/lock.service';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import { makeLocks, type TestSettings } from '../../support/make-locks';
import { noting } from '../../support/noting';
import { playTime, sleep } from '../../support/virtual-time';

playTime();

/** Notes when it is asked for releases and renewals, and answers as it is told to. */
class WatchedStore extends MemoryLockStore {
  /** When each release was asked for. */
  readonly releases: number[] = [];
  readonly renewals: number[] = [];
  onRelease = (release: () => Promise<boolean>, _hold: HoldRecord): Promise<boolean> => release();
  onRenew = (renew: () => Promise<boolean[]>): Promise<boolean[]> => renew();

  override release(hold: HoldRecord): Promise<boolean> {
    this.releases.push(performance.now());
    return this.onRelease(() => super.release(hold), hold);
  }
  override renew(holds: readonly HoldRecord[]): Promise<boolean[]> {
    this.renewals.push(performance.now());
    return this.onRenew(() => super.renew(holds));
  }
}

const noReply = new LockStoreError('no reply', 'k', { unknown: true });
const silent = (): Promise<never> => Promise.reject(noReply);
const nothing = (): undefined => undefined;
/** The lock was deleted before its release. */
const goneBefore = async (release: () => Promise<boolean>): Promise<boolean> => (await release()) && false;
/** After how many milliseconds each came, counted from the first. */
const since = (times: readonly number[]): number[] => times.map((at) => Math.round(at - (times[0] as number)));
const everyMs = (pauseMs: number, count: number): number[] => Array.from({ length: count }, (_, index) => index * pauseMs);

let store: WatchedStore;
let locks: LockService;
let troubles: LockTrouble[];
let events: LockEvent[];

const start = (settings: TestSettings = {}, expires = true): void => {
  store = new WatchedStore({ expires });
  locks = makeLocks(store, { onTrouble: noting(troubles), ...settings });
};
const listener = (event: unknown): void => void events.push(event as LockEvent);
const typesOf = (happened: readonly LockEvent[]): string[] => happened.map(({ type }) => type);

beforeEach(() => {
  troubles = [];
  events = [];
  subscribe(LOCK_CHANNEL, listener);
  start();
});
afterEach(() => {
  unsubscribe(LOCK_CHANNEL, listener);
  return locks.shutdown();
});

describe('a release that finds its lock gone', () => {
  test('is a loss: the call rejects although its code ended, and no event says that it released', async () => {
    store.onRelease = goneBefore;
    const failure: unknown = await locks.withLock('k', () => 'done').catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(LockLostError);
    expect(failure).toMatchObject({
      key: 'k',
      reason: 'expired',
      bodyRuns: false,
      detail: expect.stringMatching(/^Lock "k" was lost after 0 ms: the store no longer has it\. It was deleted/) as string,
    });
    expect(troubles).toMatchObject([{ type: 'lost', key: 'k', reason: 'expired', kept: false }]);
    expect(typesOf(events)).toEqual(['acquired', 'lost']);
    store.onRelease = (release) => release();
    expect(await locks.withLock('k', { wait: 0 }, () => 'next')).toBe('next');
  });

  test('aborts the signal of its handle, and the next call of the process goes on', async () => {
    const handle = await locks.acquire('k');
    const { signal } = handle;
    const next = locks.withLock('k', { renew: false }, () => 'next');
    const exchange = store.exchange.bind(store);
    store.exchange = async (...asked) => ({ ...(await exchange(...asked)), released: false });
    await handle.release();
    expect(signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
    expect(await next).toBe('next');
    expect(typesOf(troubles)).toEqual(['lost']);
  });

  test('at the end of a transaction tells the code of the call that had it, and the event says that it was kept', async () => {
    const scope = new TransactionScope();
    start({ transaction: scope.current });
    store.onRelease = goneBefore;
    const signal = await scope.run(() => locks.withLock('k', (lock) => lock.signal));
    await sleep(1);
    const detail = expect.stringMatching(/the store no longer has it\..* the transaction around it had not: roll it back\.$/) as string;
    expect(signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'expired', detail });
    expect(troubles).toMatchObject([{ type: 'lost', key: 'k', reason: 'expired', error: signal.reason as Error, kept: true }]);
  });

  test('is no loss where the code had ended, and minHold is over by now', async () => {
    store.onRelease = goneBefore;
    await locks.withLock('k', { minHold: 500 }, nothing);
    expect(store.releases).toEqual([]);
    await sleep(600);
    expect(store.releases).toHaveLength(1);
    expect(typesOf(events).filter((type) => type !== 'renewed')).toEqual(['acquired', 'released']);
    expect(troubles).toEqual([]);
  });

  test('just after a renewal found that it was gone within its minHold is a loss', async () => {
    await locks.withLock('k', { minHold: 500 }, () => {
      store.onRenew = async () => {
        await sleep(498);
        return [false];
      };
      store.onRelease = goneBefore;
    });
    await sleep(600);
    expect(troubles).toMatchObject([{ type: 'lost', key: 'k', reason: 'expired', kept: false }]);
    expect(store.releases).toHaveLength(1);
    await locks.shutdown();
  });
});

test('a renewal that finds the lock gone says so, and not that the lease was too short', async () => {
  const call = locks.withLock('k', { ttl: 3_000 }, async (lock) => {
    store.onRenew = async () => [false];
    await new Promise((resolve) => lock.signal.addEventListener('abort', resolve));
  });
  await expect(call).rejects.toMatchObject({
    reason: 'expired',
    detail: expect.stringMatching(/: the store no longer has it\. It was deleted/) as string,
  });
  expect(troubles).toMatchObject([{ type: 'lost', reason: 'expired', kept: false }]);
});

describe('a release that the store fails', () => {
  test.each([
    ['at once', (error: Error) => { throw error; }], // prettier-ignore
    ['later', async (error: Error) => { throw error; }], // prettier-ignore
  ])(
    '%s with an error that is none of a lock costs no result, is reported as a failure of the store, and is sent once more',
    async (_, fail) => {
      const error = new TypeError('no store');
      store.onRelease = () => fail(error);
      expect(await locks.withLock('k', { ttl: 1_000 }, () => 'result')).toBe('result');
      await sleep(100);
      expect(troubles).toMatchObject([
        {
          type: 'releaseFailed',
          key: 'k',
          error: {
            code: 'LOCK_STORE',
            key: 'k',
            detail: 'Lock "k": the store failed. Make sure that it rejects with a LockStoreError.',
            cause: error,
            unknown: true,
          },
        },
      ]);
      await sleep(5_000);
      expect(store.releases).toHaveLength(2);
    },
  );

  test('is reported with the error of the store', async () => {
    store.onRelease = silent;
    await locks.withLock('k', nothing);
    expect(troubles).toEqual([expect.objectContaining({ type: 'releaseFailed', error: noReply })]);
  });

  test.each([
    ['a tenth of the ttl', 5_000, [...everyMs(500, 12), 6_050, 6_655]],
    ['a second at the most', 60_000, everyMs(1_000, 62)],
  ])('is repeated after %s, until no grant of it could live any more', async (_, ttl, expected) => {
    // Not at the moment 0 of the clock.
    await sleep(7_000);
    store.onRelease = silent;
    await locks.withLock('k', { ttl }, nothing);
    await sleep(3 * ttl);
    const [, ...repeated] = store.releases;
    expect(since(repeated)).toEqual(expected);
  });

  test('is repeated for a minute where others may be inside by a ticket, ever more slowly', async () => {
    store.onRelease = silent;
    await locks.withLock('k', { ttl: 1_000 }, (lock) => lock.makeTicket());
    await sleep(200_000);
    const [, ...repeated] = since(store.releases);
    const pauses = repeated.slice(1).map((at, index) => at - (repeated[index] as number));
    expect(pauses[0]).toBe(100);
    expect(pauses).toEqual(pauses.toSorted((one, other) => one - other));
    expect(pauses.at(-1)).toBe(1_000);
    // A command that grants may be carried out for two seconds after its sender gave up.
    expect(repeated.at(-1)).toBeGreaterThanOrEqual(61_000 - 1);
    expect(repeated.at(-1)).toBeLessThan(62_000);
  });

  test('is repeated for as long as the lease where that is longer than a minute, and others may be inside by a ticket', async () => {
    store.onRelease = silent;
    await locks.withLock('k', { ttl: 100_000 }, (lock) => lock.makeTicket());
    await sleep(200_000);
    expect(since(store.releases).at(-1)).toBe(101_000);
  });

  test('is repeated once more at a shutdown, and never after it', async () => {
    store.onRelease = silent;
    await locks.withLock('k', { ttl: 60_000 }, nothing);
    await sleep(100);
    expect(store.releases).toHaveLength(2);
    await locks.shutdown();
    await sleep(100_000);
    expect(since(store.releases)).toEqual([0, 0, 100]);
  });
});

describe('a shutdown', () => {
  test('waits for the releases of all that runs, and reports each that the store fails', async () => {
    let answered = 0;
    store.onRelease = async (release) => {
      await sleep(300);
      await release();
      answered++;
      throw noReply;
    };
    const ends = ['a', 'b'].map((key) =>
      locks.withLock(key, (lock) => new Promise<void>((resolve) => lock.signal.addEventListener('abort', () => resolve()))),
    );
    const ended = Promise.allSettled(ends);
    await sleep(1);
    await locks.shutdown();
    expect(answered).toBe(2);
    expect(troubles.filter(({ type }) => type === 'releaseFailed')).toMatchObject(['a', 'b'].map((key) => ({ key, error: noReply })));
    expect(await ended).toMatchObject(['a', 'b'].map((key) => ({ reason: { code: 'LOCK_LOST', reason: 'shutdown', key } })));
  });

  test('within minHold waits until the store knows for how long, and reports that it does not answer', async () => {
    await locks.withLock('k', { minHold: '30s' }, nothing);
    await sleep(100);
    store.onRenew = async () => {
      await sleep(300);
      throw noReply;
    };
    await locks.shutdown();
    expect(troubles).toMatchObject([{ type: 'storeUnavailable', key: 'k', error: noReply }]);
    expect(store.releases).toEqual([]);
  });

  test('within minHold leaves nothing to be done when minHold is over', async () => {
    await locks.withLock('k', { minHold: '30s' }, nothing);
    await locks.shutdown();
    const asked = [store.releases.length, store.renewals.length];
    expect(jest.getTimerCount()).toBe(0);
    await sleep(60_000);
    expect([store.releases.length, store.renewals.length]).toEqual(asked);
    expect(troubles).toEqual([]);
  });

  test.each([true, false])('after minHold was over asks the store for nothing any more (a store whose leases end: %p)', async (expires) => {
    start({}, expires);
    await locks.withLock('k', { minHold: 500 }, nothing);
    await sleep(600);
    const asked = [store.releases.length, store.renewals.length];
    await locks.shutdown();
    expect([store.releases.length, store.renewals.length]).toEqual(asked);
    expect(troubles).toEqual([]);
  });
});

test('a lock that was lost within its minHold is not released again when minHold is over', async () => {
  await locks.withLock('k', { minHold: 5_000 }, nothing);
  await sleep(100);
  await locks.operations.forceRelease('k', { fence: (await locks.operations.inspect('k'))?.fence ?? 0 });
  await sleep(1);
  const asked = store.releases.length;
  await sleep(10_000);
  expect(store.releases).toHaveLength(asked);
  expect(jest.getTimerCount()).toBe(0);
});

test('a store whose leases do not end needs no timer while a lock is held', async () => {
  start({}, false);
  const lock = await locks.acquire('k');
  expect(jest.getTimerCount()).toBe(0);
  await sleep(1_000_000);
  expect(lock.isHeld()).toBe(true);
  expect(store.renewals).toEqual([]);
});

test('maxHold counts also where leases do not end', async () => {
  start({}, false);
  const lock = await locks.acquire('k', { maxHold: 5_000 });
  const { signal } = lock;
  await sleep(4_999);
  expect(signal.aborted).toBe(false);
  await sleep(2);
  expect(signal.reason).toMatchObject({ reason: 'maxHold' });
});

test('a lease that is doubted is asked for every tenth of it, until the store answers', async () => {
  let jump = 0;
  const clock: Clock = { monotonic: () => performance.now(), wall: () => Date.now() + jump };
  start({ clock });
  store.onRenew = (renew) => (store.renewals.length > 2 ? renew() : silent());
  const call = locks.withLock('k', { ttl: 4_000, renew: false }, () => {
    jump = 60_000;
    return 'done';
  });
  expect(await call).toBe('done');
  expect(since(store.renewals)).toEqual([0, 400, 800]);
});
