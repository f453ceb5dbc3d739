import { jest } from '@jest/globals';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Clock } from '../../../lib/core/seam/time';
import type { HoldRecord } from '../../../lib/core/seam/lock-store';
import { LockStoreError } from '../../../lib/core/words/errors';
import { LOCK_CHANNEL, type LockEvent } from '../../../lib/core/words/lock-event';
import type { LockTrouble } from '../../../lib/core/words/lock-event';
import { enterTickets } from '../../../lib/nest/current-tickets';
import type { LockService } from '../../../lib/nest/lock.service';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import { makeLocks } from '../../support/make-locks';
import { noting } from '../../support/noting';
import { saying } from '../../support/saying';
import { playTime } from '../../support/virtual-time';

/** Writes down what it is asked to renew, and fails renewals, or says that it does not know, while told to. */
class WatchedStore extends MemoryLockStore {
  readonly renewals: (readonly string[])[] = [];
  joins = 0;
  does: 'renew' | 'fail' | 'not know' = 'renew';

  override async renew(holds: readonly HoldRecord[]): Promise<boolean[]> {
    this.renewals.push(holds.map(({ key }) => key));
    if (this.does === 'fail') {
      throw new LockStoreError('no reply', holds[0]?.key ?? '', { unknown: true });
    }
    return this.does === 'renew' ? super.renew(holds) : holds.map(() => undefined as never);
  }

  override async join(hold: HoldRecord): Promise<boolean> {
    this.joins++;
    return super.join(hold);
  }
}

/**
 * Follows the time that is played, but for a wall clock that may be set, and code that keeps the event loop for a
 * while.
 */
class StubbedClock implements Clock {
  jump = 0;
  worked = 0;
  reads = 0;
  monotonic = (): number => performance.now() + this.worked;
  wall = (): number => {
    this.reads++;
    return Date.now() + this.worked + this.jump;
  };
}

// Each test says when time passes.
playTime({ passes: false });

let store: WatchedStore;
let clock: StubbedClock;
let troubles: LockTrouble[];
let locks: LockService;

beforeEach(() => {
  // So a lease is renewed when a third of its deadline is over, and not up to a tenth earlier.
  jest.spyOn(Math, 'random').mockReturnValue(0);
  store = new WatchedStore();
  clock = new StubbedClock();
  troubles = [];
  locks = makeLocks(store, { clock, onTrouble: noting(troubles) });
});
afterEach(() => {
  jest.mocked(Math.random).mockRestore();
});

const pass = (ms: number): Promise<void> => jest.advanceTimersByTimeAsync(ms);
const typesOf = (): string[] => troubles.map(({ type }) => type);

describe('a call whose code ends while its lease is doubted', () => {
  /** A machine that sleeps past the lease in the code of a call. */
  const sleepInside = (): Promise<string> =>
    locks.withLock('k', { ttl: 10_000 }, () => {
      clock.jump += 60_000;
      return 'done';
    });

  test('asks the store again where that fails at first, and has lost nothing; an event tells of the failure', async () => {
    store.does = 'fail';
    const call = sleepInside();
    await pass(10);
    expect(store.renewals).toHaveLength(1);
    expect(typesOf()).toEqual(['storeUnavailable']);
    store.does = 'renew';
    await pass(1_500);
    expect(await call).toBe('done');
    expect(typesOf()).not.toContain('lost');
  });

  test('asks the store again where that does not know, and has lost nothing', async () => {
    store.does = 'not know';
    const call = sleepInside();
    await pass(10);
    store.does = 'renew';
    await pass(1_500);
    expect(await call).toBe('done');
    expect(troubles).toEqual([]);
  });
});

describe('the clocks', () => {
  test('are not watched any more after a shutdown, also where a lock was held', async () => {
    await locks.acquire('k', { ttl: 60_000 });
    await locks.shutdown();
    clock.reads = 0;
    await pass(5_000);
    expect(clock.reads).toBe(0);
    expect(jest.getTimerCount()).toBe(0);
  });

  test('may be set while no lock is held: that has no lock renewed which is acquired later', async () => {
    await locks.withLock('first', { ttl: 60_000 }, () => undefined);
    await pass(5_000);
    clock.jump = 3_600_000;
    const lock = await locks.acquire('k', { ttl: 60_000 });
    await pass(2_500);
    expect(store.renewals).toEqual([]);
    await lock.release();
  });

  test('may differ by half a second more than before: that is no jump', async () => {
    const lock = await locks.acquire('k', { ttl: 60_000 });
    clock.jump = 500;
    await pass(2_500);
    expect(store.renewals).toEqual([]);
    clock.jump = 1_001;
    await pass(1_000);
    expect(store.renewals).toEqual([['k']]);
    await lock.release();
  });

  test('that jump while a listener works are noticed, and the other leases confirmed', async () => {
    const first = await locks.acquire('first', { ttl: 60_000, maxHold: 500 });
    const other = await locks.acquire('other', { ttl: 60_000 });
    first.signal.addEventListener('abort', () => (clock.jump = 120_000));
    await pass(550);
    expect(other.isHeld()).toBe(false);
    await pass(1_000);
    expect(store.renewals.flat()).toContain('other');
    expect(other.isHeld()).toBe(true);
  });

  test('that jump have no lease confirmed that does not end by time', async () => {
    store = new WatchedStore({ expires: false });
    const unending = makeLocks(store, { clock });
    await unending.acquire('limited', { maxHold: 1_000 });
    const other = await unending.acquire('other');
    clock.jump = 3_600_000;
    await pass(1_100);
    expect(other.isHeld()).toBe(true);
    expect(store.renewals).toEqual([]);
  });
});

describe('a renewal', () => {
  test('that is only nearly due sends no command by itself', async () => {
    await locks.acquire('limited', { ttl: 60_000, maxHold: 1_000 });
    // It is due after 1,033 ms, and may go along with others from 926 ms on.
    await locks.acquire('k', { ttl: 3_200 });
    await pass(1_020);
    expect(store.renewals).toEqual([]);
    await pass(20);
    expect(store.renewals).toEqual([['k']]);
  });

  test('that is due is sent, though those of leases before and after it are due only nearly', async () => {
    await locks.acquire('before', { ttl: 3_200 });
    await locks.acquire('due', { ttl: 3_000 });
    await locks.acquire('after', { ttl: 3_200 });
    await pass(980);
    expect(store.renewals.flat()).toContain('due');
  });

  test('has left before a listener runs that became due with it, and the listener runs once', async () => {
    const order: string[] = [];
    const limited = await locks.acquire('limited', { ttl: 60_000, maxHold: 500 });
    limited.signal.addEventListener('abort', () => order.push('notified'));
    await locks.acquire('k', { ttl: 3_000 });
    const renew = store.renew.bind(store);
    store.renew = async (holds) => {
      // As a client, which writes to its connection once the code before has ended.
      await Promise.resolve();
      order.push('sent');
      return renew(holds);
    };
    await pass(400);
    // Both become due while something blocks.
    clock.worked = 700;
    await pass(400);
    expect(order).toEqual(['sent', 'notified']);
  });

  test('that the store has carried out is an event, with the part of the lease that was left', async () => {
    const margins: number[] = [];
    const listen = (event: unknown): void => {
      const seen = event as LockEvent;
      margins.push(...(seen.type === 'renewed' ? [seen.margin] : []));
    };
    subscribe(LOCK_CHANNEL, listen);
    try {
      const lock = await locks.acquire('k', { ttl: 3_000 });
      await pass(1_050);
      expect(margins).toEqual([expect.closeTo(2 / 3, 2)]);
      await lock.release();
    } finally {
      unsubscribe(LOCK_CHANNEL, listen);
    }
  });

  test('whose outcome the store does not know is no answer after an outage', async () => {
    const lock = await locks.acquire('k', { ttl: 9_000 });
    store.does = 'fail';
    await pass(3_000);
    expect(typesOf()).toEqual(['storeUnavailable']);
    store.does = 'not know';
    await pass(1_500);
    expect(typesOf()).toEqual(['storeUnavailable']);
    store.does = 'renew';
    await pass(1_500);
    expect(typesOf()).toEqual(['storeUnavailable', 'storeAnswered']);
    await lock.release();
  });

  test('that is answered when the lease past maxHold is over brings nothing back', async () => {
    const renew = store.renew.bind(store);
    let answer: (() => void) | undefined;
    store.renew = (holds) => renew(holds).then((held) => new Promise((resolve) => (answer = () => resolve(held))));
    const lock = await locks.acquire('k', { ttl: 3_000, maxHold: 1_500 });
    await pass(1_600);
    expect(lock.signal.reason).toMatchObject({ reason: 'maxHold' });
    expect(lock.isHeld()).toBe(true);
    // Code keeps the event loop past the end of the lease, and the answer lies unread.
    clock.worked = 2_000;
    expect(lock.isHeld()).toBe(false);
    answer?.();
    for (let turn = 0; turn < 20; turn++) {
      await Promise.resolve();
    }
    expect(lock.isHeld()).toBe(false);
  });
});

describe('code whose time is over', () => {
  const acquireLimited = async (keys: readonly string[], listener: (key: string) => void): Promise<void> => {
    for (const key of keys) {
      const lock = await locks.acquire(key, { ttl: 60_000, maxHold: 1_000 });
      lock.signal.addEventListener('abort', () => listener(key));
    }
  };

  test('is notified in one go, however many sections there are, where each listener is quick', async () => {
    const notified = new Set<number>();
    const keys = Array.from({ length: 20 }, (_, at) => `k${at}`);
    await acquireLimited(keys, () => notified.add(performance.now()));
    await pass(1_100);
    expect(notified.size).toBe(1);
  });

  test('is notified in one go where the listeners work for 5 ms', async () => {
    const notified: number[] = [];
    await acquireLimited(['a', 'b'], (key) => {
      notified.push(performance.now());
      clock.worked += key === 'a' ? 5 : 0;
    });
    await pass(1_100);
    expect(notified).toEqual([notified[0], notified[0]]);
  });

  test('is notified after the renewals that became due while a listener worked', async () => {
    const order: string[] = [];
    await acquireLimited(['slow', 'next'], (key) => {
      order.push(key);
      clock.worked += key === 'slow' ? 700 : 0;
    });
    const renew = store.renew.bind(store);
    store.renew = (holds) => {
      order.push(`renewal of ${holds.map(({ key }) => key).join()}`);
      return renew(holds);
    };
    await locks.acquire('k', { ttl: 4_500 });
    await pass(1_100);
    expect(order).toEqual(['slow', 'renewal of k', 'next']);
  });

  test('is not notified where a listener has just released its lock, which is not lost later either', async () => {
    const [first, second] = await Promise.all(['a', 'b'].map((key) => locks.acquire(key, { ttl: 3_000, maxHold: 1_000 })));
    first?.signal.addEventListener('abort', () => void second?.release());
    await pass(4_500);
    expect(() => second?.assertHeld()).toThrow(expect.objectContaining({ reason: 'released' }));
    expect(second?.signal.aborted).toBe(false);
    expect(troubles).toEqual([expect.objectContaining({ type: 'lost', key: 'a' })]);
  });

  test('past its maxHold is told in how many milliseconds the lock ends', async () => {
    const lock = await locks.acquire('k', { ttl: 3_000, maxHold: 500 });
    await pass(500);
    expect(lock.signal.reason).toEqual(saying(`ends in ${3_000 * 0.99 - 2 - 500} ms`));
    await lock.release();
  });
});

describe('a lock that only its minHold keeps', () => {
  test('has no margin in a health check: no code trusts it', async () => {
    store.does = 'fail';
    await locks.withLock('k', { ttl: 3_000, minHold: 10_000 }, () => undefined);
    await pass(10);
    const health = await locks.operations.health();
    expect(health).toMatchObject({ heldHere: 1 });
    expect(health).not.toHaveProperty('leastMarginMs');
  });

  test('is entered by no further call that came with its ticket: that joins anew', async () => {
    const host = await makeLocks(store).acquire('k', { ttl: 60_000 });
    await enterTickets(host.makeTicket(), async () => {
      await locks.withLock('k', { ttl: 60_000, minHold: 1_000 }, () => undefined);
      await locks.withLock('k', { ttl: 60_000 }, async (lock) => {
        await pass(2_000);
        // The lease of the call before has ended with its minHold.
        expect(lock.isHeld()).toBe(true);
      });
    });
    expect(store.joins).toBe(2);
    await host.release();
  });
});
