import { jest } from '@jest/globals';
import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { outsideLocks } from '../../../lib/core/calls/call-tree';
import { LockConfigurationError, LockLostError, LockNotAcquiredError } from '../../../lib/core/words/errors';
import type { Lock } from '../../../lib/core/words/lock';
import type { LockTrouble } from '../../../lib/core/words/lock-event';
import { TransactionScope } from '../../../lib/core/transactions/transaction-scope';
import type { LockService } from '../../../lib/nest/lock.service';
import type { Clock } from '../../../lib/core/seam/time';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import { makeLocks, type TestSettings } from '../../support/make-locks';
import { LEFT_BEHIND } from '../../transaction/left-behind';
import { noting } from '../../support/noting';
import { until } from '../../support/until';
import { playTime, sleep } from '../../support/virtual-time';
import { watchRejections } from '../../support/watch-rejections';

playTime();

let scope: TransactionScope;
let store: MemoryLockStore;
let troubles: LockTrouble[];
let locks: LockService;
/** Another process. */
let others: LockService;

const never = (): never => {
  throw new Error('The body ran.');
};
const nothing = (): undefined => undefined;
const refuse = (): never => {
  throw new Error('refused');
};
const start = (settings: TestSettings = {}): void => {
  store = new MemoryLockStore();
  locks = makeLocks(store, { transaction: scope.current, onTrouble: noting(troubles), ...settings });
  others = makeLocks(store);
};
const isTaken = async (key = 'k'): Promise<boolean> =>
  (await others.tryAcquire(key).then(async (lock) => lock?.release() ?? 'taken')) === 'taken';
const lose = async (key = 'k'): Promise<void> => {
  await others.operations.forceRelease(key, { fence: (await others.operations.inspect(key))?.fence ?? 0 });
  await turn();
};

/** A transaction that the test ends. */
function begin<T>(body: () => Promise<T>): { begun: Promise<T>; end(reason?: Error): Promise<void> } {
  let end!: (error?: Error) => void;
  const ended = new Promise<void>((resolve, reject) => {
    end = (error) => (error ? reject(error) : resolve());
  });
  let begun!: Promise<T>;
  const whole = scope.run(async () => {
    begun = body();
    await begun.catch(nothing);
    await ended;
  });
  whole.catch(nothing);
  return {
    begun,
    end: async (reason) => {
      await begun.catch(nothing);
      end(reason);
      await whole.catch(nothing);
      await turn();
    },
  };
}

beforeEach(() => {
  scope = new TransactionScope();
  troubles = [];
  start();
});
afterEach(() => Promise.all([locks.shutdown(), others.shutdown()]));

describe('a lock that is taken inside a transaction', () => {
  test.each([
    ['a commit', undefined],
    ['a rollback', new Error('rolled back')],
  ])('is held until %s', async (_end, error) => {
    const { begun, end } = begin(() => locks.withLock('k', () => 'result'));
    expect(await begun).toBe('result');
    expect(await isTaken()).toBe(true);
    expect(await others.operations.inspect('k')).toMatchObject({ by: expect.stringContaining(`pid ${process.pid}`) as string });
    expect((await locks.operations.health()).heldHere).toBe(1);
    await end(error);
    expect(await isTaken()).toBe(false);
    expect(troubles).toEqual([]);
  });

  test('is renewed until then', async () => {
    const { begun, end } = begin(() => locks.withLock('k', { ttl: 1_000 }, nothing));
    await begun;
    await sleep(2_500);
    expect(await isTaken()).toBe(true);
    await end();
    expect(await isTaken()).toBe(false);
    expect(troubles).toEqual([]);
  });

  test('of several keys, or by a handle, is held likewise, and the handle is held until then', async () => {
    const { begun, end } = begin(async () => {
      await locks.withLock(['a', 'b'], nothing);
      const handle = await locks.acquire('c');
      await handle.release();
      return handle;
    });
    const handle = await begun;
    expect([await isTaken('a'), await isTaken('b'), await isTaken('c')]).toEqual([true, true, true]);
    expect(handle.isHeld()).toBe(true);
    handle.assertHeld();
    expect(() => handle.run(never)).toThrow(LockLostError);
    // Who came with it would be inside before the commit.
    expect(() => handle.makeTicket()).toThrow(LockLostError);
    await end();
    expect([await isTaken('a'), await isTaken('b'), await isTaken('c')]).toEqual([false, false, false]);
    expect(handle.isHeld()).toBe(false);
    expect(() => handle.assertHeld()).toThrow(LockLostError);
  });

  test('whose handle is released after the end is held until then', async () => {
    const { begun, end } = begin(() => locks.acquire('k'));
    const handle = await begun;
    await end();
    expect(await isTaken()).toBe(true);
    await handle.release();
    expect(await isTaken()).toBe(false);
  });

  test('is kept from a next call of this process too', async () => {
    const { begun, end } = begin(() => locks.withLock('k', nothing));
    await begun;
    const next = locks.withLock('k', () => 'next');
    await expect(locks.withLock('k', { wait: 100 }, never)).rejects.toMatchObject({
      reason: 'busy',
      detail: expect.stringContaining('the transaction around it has not') as string,
    });
    await end();
    expect(await next).toBe('next');
  });

  test('that was re-entered is held until the end, also where the outer call has ended', async () => {
    let transaction!: ReturnType<typeof begin>;
    await locks.withLock('k', async () => {
      transaction = begin(() => locks.withLock('k', nothing));
      await transaction.begun;
    });
    expect(await isTaken()).toBe(true);
    await transaction.end();
    expect(await isTaken()).toBe(false);
  });

  test('is not held where a call of several keys was refused', async () => {
    const other = await others.acquire('b');
    const { begun, end } = begin(() => locks.withLock(['a', 'b'], { wait: 50 }, never));
    await expect(begun).rejects.toBeInstanceOf(LockNotAcquiredError);
    expect(await isTaken('a')).toBe(false);
    await other.release();
    await end();
  });

  test('is not held where its call was aborted, in whichever moment', async () => {
    const outcomes = new Set<string>();
    for (let hops = 0; hops < 40; hops++) {
      const aborter = new AbortController();
      const call = (): Promise<string> =>
        locks.withLock('k', { signal: aborter.signal }, () => 'entered').catch(({ reason }: LockNotAcquiredError) => reason);
      const { begun, end } = begin(async () => {
        const called = call();
        for (let hop = 0; hop < hops; hop++) {
          await undefined;
        }
        aborter.abort();
        return called;
      });
      const outcome = await begun;
      await turn();
      expect([outcome, await isTaken()]).toEqual([outcome, outcome === 'entered']);
      outcomes.add(outcome);
      await end();
      expect(await isTaken()).toBe(false);
    }
    expect([...outcomes].toSorted()).toEqual(['aborted', 'entered']);
  });

  test('by a ticket inside it is held until the end too, and so is the lock that the ticket is of', async () => {
    const { begun, end } = begin(() =>
      locks.withLock('k', (lock) => locks.withLock('k', { ticket: lock.makeTicket(), reentry: 'never' }, ({ fence }) => fence)),
    );
    await begun;
    expect(await others.operations.inspect('k')).toMatchObject({ holds: 2 });
    await end();
    expect(await others.operations.inspect('k')).toBeNull();
  });

  test('keeps its minHold after the end', async () => {
    const { begun, end } = begin(() => locks.withLock('k', { minHold: 60_000 }, nothing));
    await begun;
    await end();
    expect(await isTaken()).toBe(true);
  });

  test('outside of a transaction, and after its end, a lock is released when its method ends', async () => {
    await locks.withLock('k', nothing);
    expect(await isTaken()).toBe(false);
    let late!: () => Promise<unknown>;
    const { end } = begin(async () => {
      let go!: () => void;
      const gate = new Promise<void>((resolve) => (go = resolve));
      const later = gate.then(() => locks.withLock('k', nothing));
      late = () => (go(), later);
    });
    await end();
    await late();
    expect(await isTaken()).toBe(false);
  });
});

describe.each(Object.entries(LEFT_BEHIND))('a transaction that begins in %s', (_way, leave) => {
  /** Runs `work` in a context of this way, which the transaction around it left behind. */
  const afterwards = async (work: () => Promise<unknown>): Promise<void> => {
    let later!: () => Promise<void>;
    await scope.run(async () => {
      later = leave(async () => void (await work()));
    });
    await later();
  };

  test('after the end of another one holds its locks until its own end', async () => {
    const held: boolean[] = [];
    await afterwards(async () => {
      const { begun, end } = begin(() => locks.withLock('k', nothing));
      await begun;
      held.push(await isTaken());
      await end();
      held.push(await isTaken());
    });
    expect(held).toEqual([true, false]);
  });

  test('after the end of one that was nested begins anew too, and so does what `around` follows', async () => {
    const held: boolean[] = [];
    const open = scope.around(async (work: () => Promise<void>) => work());
    await scope.run(() =>
      scope.run(() =>
        afterwards(async () => {
          // The savepoint has ended, and the transaction around it has not.
          await open(() => locks.withLock('k', nothing));
          held.push(await isTaken());
        }),
      ),
    );
    await turn();
    held.push(await isTaken());
    let later!: () => Promise<void>;
    await scope.run(() =>
      scope.run(async () => {
        later = leave(() =>
          open(async () => {
            await locks.withLock('k', nothing);
            held.push(await isTaken());
          }),
        );
      }),
    );
    await later();
    await turn();
    held.push(await isTaken());
    expect(held).toEqual([true, false, true, false]);
  });

  test('loses no update', async () => {
    let balance = 0;
    const credit = (by: LockService): Promise<void> =>
      scope.run(async () => {
        let after = 0;
        await by.withLock('k', async () => {
          after = balance + 1;
          await turn();
        });
        await sleep(2);
        balance = after;
      });
    others = makeLocks(store, { transaction: scope.current });
    await Promise.all(Array.from({ length: 16 }, (_, at) => afterwards(() => credit(at % 2 ? locks : others))));
    expect(balance).toBe(16);
  });
});

describe('a transaction that the one around it does not await', () => {
  test('holds the locks of both until it has ended', async () => {
    const inner: ReturnType<typeof begin>[] = [];
    const { begun, end } = begin(async () => {
      await locks.withLock('outer', nothing);
      inner.push(begin(() => locks.withLock('inner', nothing)));
    });
    await begun;
    await inner[0]?.begun;
    await end();
    expect([await isTaken('outer'), await isTaken('inner')]).toEqual([true, true]);
    await inner[0]?.end();
    expect([await isTaken('outer'), await isTaken('inner')]).toEqual([false, false]);
  });

  test('is not joined by one that begins after the end of the outer one', async () => {
    let later!: () => Promise<void>;
    let inner!: ReturnType<typeof begin>;
    const held: boolean[] = [];
    await scope.run(async () => {
      inner = begin(() => locks.withLock('inner', nothing));
      later = (LEFT_BEHIND['an AsyncResource'] as (typeof LEFT_BEHIND)[string])(async () => {
        const { begun, end } = begin(() => locks.withLock('k', nothing));
        await begun;
        await expect(scope.run(() => locks.withLock('inner', { wait: 50 }, never))).rejects.toThrow(LockNotAcquiredError);
        await end();
        held.push(await isTaken());
      });
    });
    await later();
    expect(held).toEqual([false]);
    await inner.end();
  });
});

describe('outsideLocks in a transaction', () => {
  test('enters the locks that the transaction keeps, and leaves its own to it', async () => {
    const { begun, end } = begin(async () => {
      await locks.withLock('k', nothing);
      await outsideLocks(() => locks.withLock('k', { wait: 0 }, nothing));
      await outsideLocks(() => locks.withLock('audit', nothing));
      await outsideLocks(() => locks.withLock('audit', { wait: 0 }, nothing));
    });
    await begun;
    expect([await isTaken('k'), await isTaken('audit')]).toEqual([true, true]);
    await end();
    expect([await isTaken('k'), await isTaken('audit')]).toEqual([false, false]);
  });

  test('that begins a part of it, as the database may have it, holds the locks of that until the commit', async () => {
    const session = await outsideLocks(() => locks.acquire('session'));
    const { begun, end } = begin(async () => {
      await outsideLocks(() => scope.run(() => locks.withLock('a', nothing)));
      await session.run(() => scope.run(() => locks.withLock('b', nothing)));
    });
    await begun;
    expect([await isTaken('a'), await isTaken('b')]).toEqual([true, true]);
    await end();
    expect([await isTaken('a'), await isTaken('b')]).toEqual([false, false]);
    await session.release();
  });
});

test('transactions each of which begins in the context that the last one left behind are not kept in memory', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const ends: WeakRef<object>[] = [];
  const kept = await new Promise<number>((done) => {
    const step = (left: number): unknown =>
      scope.run(async () => {
        await locks.withLock('k', ({ signal }) => signal.aborted);
        ends.push(new WeakRef(scope.current() as object));
        if (left > 0) {
          setImmediate(() => step(left - 1));
          return;
        }
        // While the last one goes on, whose context came from all of them.
        for (let times = 0; times < 3; times++) {
          await turn();
          collect();
        }
        done(ends.filter((end) => end.deref() !== undefined).length);
      });
    step(300);
  });
  expect(kept).toBeLessThan(30);
});

describe('calls of one transaction on one key', () => {
  test('enter one after the other, at the same fence', async () => {
    const { begun, end } = begin(async () => [
      await locks.withLock('k', ({ fence }) => fence),
      await locks.withLock('k', ({ fence }) => fence),
      await locks.acquire('k').then(async (lock) => (await lock.release(), lock.fence)),
    ]);
    const [first, ...fences] = await begun;
    expect(fences).toEqual([first, first]);
    await end();
    expect(await isTaken()).toBe(false);
  });

  test('that start in parallel run one after the other, and do not wait for their own commit', async () => {
    let inside = 0;
    const body = async (): Promise<void> => {
      expect(++inside).toBe(1);
      await sleep(10);
      inside--;
    };
    const other = await others.acquire('k');
    const { begun, end } = begin(() => Promise.all(Array.from({ length: 5 }, () => locks.withLock(['j', 'k'], body))));
    await sleep(50);
    await other.release();
    await begun;
    expect(await isTaken()).toBe(true);
    await end();
    expect(await isTaken()).toBe(false);
  });

  test('in parallel with different options of keys neither hang', async () => {
    const { begun, end } = begin(() =>
      Promise.all([['a', 'b'], ['b'], ['b', 'c'], ['a'], ['c']].map((keys) => locks.withLock(keys, () => turn()))),
    );
    await begun;
    await end();
    expect([await isTaken('a'), await isTaken('b'), await isTaken('c')]).toEqual([false, false, false]);
  });

  test('of which the first gave up: the next acquires in its place', async () => {
    const other = await others.acquire('k');
    const { begun, end } = begin(async () => {
      const first = locks.withLock('k', { wait: 50 }, never).catch((error: unknown) => error);
      const second = locks.withLock('k', () => 'second');
      await first;
      await other.release();
      return [await first, await second];
    });
    expect(await begun).toEqual([expect.any(LockNotAcquiredError), 'second']);
    await end();
  });

  test('of which one lost its first key while it waited for the second: it takes both anew, and does not wait for itself', async () => {
    const other = await others.acquire('b');
    const { begun, end } = begin(() => locks.withLock(['a', 'b'], () => 'entered'));
    await until('it has a', () => isTaken('a'));
    await lose('a');
    await other.release();
    expect(await begun).toBe('entered');
    expect([await isTaken('a'), await isTaken('b')]).toEqual([true, true]);
    await end();
  });

  test('enter from inside a savepoint, which ends with the transaction', async () => {
    const { begun, end } = begin(async () => {
      await scope.run(() => locks.withLock('k', nothing));
      expect(await isTaken()).toBe(true);
      return locks.withLock('k', () => 'entered');
    });
    expect(await begun).toBe('entered');
    expect(await isTaken()).toBe(true);
    await end();
    expect(await isTaken()).toBe(false);
  });

  test('of two transactions inside one lock run one after the other commit', async () => {
    await locks.withLock('k', async () => {
      const first = begin(() => locks.withLock('k', nothing));
      await first.begun;
      let isIn = false;
      const second = begin(() => locks.withLock('k', () => (isIn = true)));
      await sleep(50);
      expect(isIn).toBe(false);
      await first.end();
      await second.begun;
      await second.end();
    });
    expect(await isTaken()).toBe(false);
  });
});

describe('transactions that take locks in opposite order', () => {
  test('of one process: one call is refused at once, and its transaction may roll back', async () => {
    const step = (first: string, second: string) =>
      begin(async () => {
        await locks.withLock(first, nothing);
        await sleep(50);
        return locks.withLock(second, { wait: '60s' }, () => 'done');
      });
    const one = step('a', 'b');
    const other = step('b', 'a');
    const refused = await Promise.race([one, other].map((each) => each.begun.then(never, (error: unknown) => ({ each, error }))));
    expect(refused.error).toMatchObject({ reason: 'cycle', cycle: [{ waitsFor: expect.anything() as string }, {}] });
    await refused.each.end(new Error('rolled back'));
    expect(await (refused.each === one ? other : one).begun).toBe('done');
    await Promise.all([one.end(), other.end()]);
  });

  test('of two processes: one call is refused soon', async () => {
    const scopes = [scope, new TransactionScope()];
    const both = scopes.map((each) => makeLocks(store, { transaction: each.current, deadlocksAfterMs: 100 }));
    const outcomes = await Promise.allSettled(
      [0, 1].map((at) =>
        scopes[at]?.run(async () => {
          await both[at]?.withLock(`k${at}`, nothing);
          await sleep(50);
          return both[at]?.withLock(`k${1 - at}`, { wait: '60s' }, () => 'done');
        }),
      ),
    );
    expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    expect(outcomes.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { reason: 'cycle' } });
    await Promise.all(both.map((each) => each.shutdown()));
  });

  test.each([
    ['of one process', 1],
    ['of two processes', 2],
  ])('where a call began to wait before its transaction kept anything, %s: one call is refused soon', async (_, processes) => {
    const scopes = [scope, processes === 1 ? scope : new TransactionScope()];
    const both = scopes.map((each) => makeLocks(store, { transaction: each.current, deadlocksAfterMs: 100 }));
    const [one, other] = (processes === 1 ? [both[0], both[0]] : both) as [LockService, LockService];
    const startedAt = performance.now();
    const outcomes = await Promise.allSettled([
      scopes[0]?.run(async () => {
        await sleep(20);
        await Promise.all([one.withLock('b', { wait: '60s' }, nothing), sleep(10).then(() => one.withLock('a', nothing))]);
      }),
      scopes[1]?.run(async () => {
        await other.withLock('b', nothing);
        await sleep(200);
        await other.withLock('a', { wait: '60s' }, nothing);
      }),
    ]);
    expect(outcomes.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { reason: 'cycle' } });
    expect(outcomes.filter(({ status }) => status === 'rejected')).toHaveLength(1);
    expect(performance.now() - startedAt).toBeLessThan(1_500);
    await Promise.all(both.map((each) => each.shutdown()));
  });

  test.each([
    ['of one process', 1],
    ['of two processes', 2],
  ])('on two stores, %s: one call is refused, and its transaction may roll back', async (_, processes) => {
    const stores = [new MemoryLockStore(), new MemoryLockStore()];
    const scopes = [scope, processes === 1 ? scope : new TransactionScope()];
    const services = scopes.map((each) => stores.map((its) => makeLocks(its, { transaction: each.current, deadlocksAfterMs: 100 })));
    const outcomes = await Promise.allSettled(
      [0, 1].map((at) =>
        scopes[at]?.run(async () => {
          const own = services[at] as LockService[];
          await own[at]?.withLock('k', nothing);
          await sleep(50);
          return own[1 - at]?.withLock('k', { wait: '60s' }, () => 'done');
        }),
      ),
    );
    expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    expect(outcomes.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { reason: 'cycle' } });
    await Promise.all(services.flat().map((each) => each.shutdown()));
  });

  test.each([
    ['the call outside', 0],
    ['the call on several keys', 200],
  ])('where a call on several keys waits beside another call of its transaction: %s closes the circle', async (_, firstHeldMs) => {
    const first = locks.withLock('a', () => sleep(firstHeldMs));
    const outside = locks.withLock('b', async () => {
      await sleep(100);
      return locks.withLock('a', { wait: '60s' }, () => 'done');
    });
    const { begun, end } = begin(() =>
      Promise.allSettled(['b', ['a', 'b']].map((keys) => locks.withLock(keys, { wait: '60s' }, () => 'done'))),
    );
    const outcomes = [...(await Promise.allSettled([first, outside])), ...(await begun)];
    await end();
    expect(outcomes.flatMap((each) => (each.status === 'rejected' ? [(each.reason as LockNotAcquiredError).reason] : []))).toEqual([
      'cycle',
    ]);
  });
});

describe('a lock that is lost between the end of its method and the commit', () => {
  const losses = (): LockTrouble[] => troubles.filter(({ type }) => type === 'lost');

  test('aborts its signal, is told to the next locked call of the transaction on any key, and is an event', async () => {
    let lock!: Lock;
    let early!: AbortSignal;
    const { begun, end } = begin(async () => {
      await locks.withLock('k', (given) => {
        lock = given;
        early = given.signal;
      });
      await lose();
      return locks.withLock('other', never);
    });
    await expect(begun).rejects.toMatchObject({
      code: 'LOCK_LOST',
      reason: 'forced',
      key: 'k',
      detail: expect.stringContaining('roll it back') as string,
    });
    expect(early.aborted).toBe(true);
    expect(lock.isHeld()).toBe(false);
    expect(() => lock.assertHeld()).toThrow(expect.objectContaining({ reason: 'forced' }) as Error);
    expect(losses()).toMatchObject([{ type: 'lost', key: 'k', reason: 'forced', kept: true }]);
    await end();
    expect(await isTaken()).toBe(false);
    expect(losses()).toHaveLength(1);
  });

  test('aborts the signals of the calls on its key only, and refuses nothing once the transaction has ended', async () => {
    let other!: AbortSignal;
    let late!: () => void;
    const gate = new Promise<void>((resolve) => (late = resolve));
    let later!: Promise<string>;
    const { begun, end } = begin(async () => {
      await locks.withLock('other', ({ signal }) => void (other = signal));
      await locks.withLock('k', ({ signal }) => signal);
      later = gate.then(() => locks.withLock('other', () => 'entered'));
      await lose();
    });
    await begun;
    expect(other.aborted).toBe(false);
    await end();
    late();
    expect(await later).toBe('entered');
  });

  test('refuses a call that waited for another lease on its key meanwhile', async () => {
    const holder = await others.acquire('k');
    const { begun, end } = begin(async () => {
      await locks.withLock('k', { ticket: holder.makeTicket() }, nothing);
      const waiting = locks.acquire('k', { reentry: 'never' }).catch((error: unknown) => error);
      await lose();
      return waiting;
    });
    expect(await begun).toMatchObject({ code: 'LOCK_LOST', reason: 'forced' });
    await end();
    expect(await isTaken()).toBe(false);
  });

  test('aborts a signal that is asked for only then', async () => {
    let lock!: Lock;
    const { begun, end } = begin(() => locks.withLock('k', (given) => void (lock = given)));
    await begun;
    await lose();
    expect(lock.signal.aborted).toBe(true);
    await end();
  });

  test('since the thread or the machine stood still is found at the end of the transaction, before its release', async () => {
    const clock: Clock = { monotonic: () => performance.now() + stoodStillMs, wall: () => Date.now() + stoodStillMs + sleptMs };
    let [stoodStillMs, sleptMs] = [0, 0];
    const asked: string[] = [];
    start({ clock });
    for (const name of ['renew', 'release'] as const) {
      const command = store[name].bind(store) as (...args: unknown[]) => Promise<never>;
      store[name] = (...args: unknown[]) => {
        asked.push(name);
        return command(...args);
      };
    }
    const stood = begin(() => locks.withLock('k', { ttl: 5_000, renew: false }, () => undefined));
    await stood.begun;
    stoodStillMs = 60_000;
    await stood.end();
    expect(losses()).toMatchObject([{ type: 'lost', key: 'k', reason: 'expired', kept: true }]);
    stoodStillMs = 0;
    asked.length = 0;
    const slept = begin(() => locks.withLock('k', { ttl: 5_000, renew: false }, () => undefined));
    await slept.begun;
    sleptMs = 60_000;
    await slept.end();
    expect(asked).toEqual(['renew', 'release']);
    expect(losses()).toHaveLength(1);
  });

  test('by its maxHold, where the promise never settles', async () => {
    start({ ttl: 300 });
    const { begun, end } = begin(() => locks.withLock('k', { maxHold: 200 }, (lock) => lock));
    const lock = await begun;
    const { signal } = lock;
    await until('that the lock is free', async () => !(await isTaken()));
    expect(signal.reason).toMatchObject({ reason: 'maxHold' });
    expect(troubles).toMatchObject([{ type: 'lost', reason: 'maxHold', kept: true }]);
    await end();
  });

  test('by its maxHold aborts its signal before the lock can be taken', async () => {
    const { begun, end } = begin(() => locks.withLock('k', { ttl: 60_000, maxHold: 1_000 }, (lock) => [lock, lock.signal] as const));
    const [lock, signal] = await begun;
    await sleep(500);
    expect(signal.aborted).toBe(false);
    await sleep(1_000);
    expect([signal.aborted, lock.isHeld(), await isTaken()]).toEqual([true, true, true]);
    expect(signal.reason).toMatchObject({ reason: 'maxHold' });
    await end();
    expect(await isTaken()).toBe(false);
  });

  test('by the shutdown, which does not wait for a promise that never settles, and says what it released', async () => {
    const { begun } = begin(() => locks.withLock('k', nothing));
    await begun;
    const startedAt = performance.now();
    await locks.shutdown();
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    expect(troubles).toMatchObject([{ type: 'lost', key: 'k', reason: 'shutdown', kept: true }]);
    expect(await isTaken()).toBe(false);
  });
});

describe('the function that names the end', () => {
  test('that throws refuses the call, and names itself', async () => {
    const cause = new Error('no context');
    start({
      transaction: () => {
        throw cause;
      },
    });
    await expect(locks.withLock('k', never)).rejects.toBeInstanceOf(LockConfigurationError);
    await expect(locks.acquire('k')).rejects.toMatchObject({
      cause,
      key: '',
      detail: expect.stringMatching(/the option transaction threw .* Return the promise of the end of the transaction/) as string,
    });
    expect(await isTaken()).toBe(false);
  });

  test.each([true, null])('that returns no promise but %s refuses the call', async (returned) => {
    start({ transaction: (() => returned) as never });
    await expect(locks.withLock('k', never)).rejects.toMatchObject({
      code: 'LOCK_CONFIGURATION',
      detail: expect.stringMatching(new RegExp(`transaction returned ${returned}\\. Return the promise of the end`)) as string,
    });
  });

  test.each([
    // oxlint-disable-next-line no-thenable -- what is tested
    ['then throws', () => ({ then: refuse }), 'the method then'],
    // oxlint-disable-next-line no-thenable
    ['then cannot be read', () => Object.defineProperty({}, 'then', { get: refuse }), 'the function of the option transaction'],
  ])('that returns an object whose %s refuses each call, says so, and keeps no lock', async (_, make, thrower) => {
    const end = make();
    start({ transaction: () => end as never });
    for (let call = 0; call < 2; call++) {
      await expect(locks.withLock('k', never)).rejects.toMatchObject({
        code: 'LOCK_CONFIGURATION',
        cause: expect.objectContaining({ message: 'refused' }) as Error,
        detail: expect.stringContaining(thrower) as string,
      });
    }
    expect(await isTaken()).toBe(false);
  });

  test('that returns the promise of one that has ended is a warning, said once, and the call is outside of any', async () => {
    const warn = jest.spyOn(process, 'emitWarning').mockReturnValue();
    const end = Promise.resolve();
    start({ transaction: () => end });
    await locks.withLock('k', nothing);
    expect(warn).not.toHaveBeenCalled();
    for (let call = 0; call < 2; call++) {
      await locks.withLock('k', { name: 'credit' }, nothing);
      expect(await isTaken()).toBe(false);
    }
    expect(warn.mock.calls).toEqual([
      [
        expect.stringMatching(
          /withLock.* a transaction that has ended.* before the commit of a newer one\. Make sure that .* undefined once that has ended.*TransactionScope.*docs\/transactions\.md/,
        ) as string,
        'LockWarning',
      ],
    ]);
    warn.mockRestore();
  });

  test('that returns the promise of one that has ended keeps calls in nothing of it: what it lost refuses none of them', async () => {
    const warn = jest.spyOn(process, 'emitWarning').mockReturnValue();
    let end!: () => void;
    const ended = new Promise<void>((resolve) => (end = resolve));
    start({ transaction: () => ended });
    await locks.withLock('k', nothing);
    await lose();
    await expect(locks.withLock('j', never)).rejects.toMatchObject({ code: 'LOCK_LOST', key: 'k' });
    end();
    await turn();
    expect(await locks.withLock('j', () => 'entered')).toBe('entered');
    expect(await isTaken('j')).toBe(false);
    warn.mockRestore();
  });

  test('of a scope returns none once it has ended, also to the first code after the end', async () => {
    const warn = jest.spyOn(process, 'emitWarning').mockReturnValue();
    for (const leave of Object.values(LEFT_BEHIND)) {
      let later!: () => Promise<void>;
      await scope.run(async () => {
        await locks.withLock('k', nothing);
        later = leave(() => locks.withLock('k', nothing).then(nothing));
      });
      await later();
      await turn();
      expect(await isTaken()).toBe(false);
    }
    expect(warn).not.toHaveBeenCalled();
    warn.mockRestore();
  });

  test('may return a promise that rejects: that is no unhandled rejection', async () => {
    const seen: unknown[] = [];
    const stop = watchRejections((reason) => seen.push(reason));
    let fail!: (error: Error) => void;
    const end = new Promise((_, reject) => (fail = reject));
    start({ transaction: () => end });
    await locks.withLock('k', nothing);
    expect(await isTaken()).toBe(true);
    fail(new Error('rolled back'));
    await sleep(50);
    expect(await isTaken()).toBe(false);
    stop();
    expect(seen).toEqual([]);
  });
});

test('a call that waited while its transaction lost a lock is refused, and its body does not run', async () => {
  const other = await others.acquire('waited');
  const { begun, end } = begin(async () => {
    await locks.withLock('k', nothing);
    const waiting = locks.withLock('waited', never).catch((error: unknown) => error);
    await turn();
    await lose();
    await other.release();
    return waiting;
  });
  expect(await begun).toMatchObject({ code: 'LOCK_LOST', reason: 'forced', key: 'k' });
  await end();
  expect(await isTaken('waited')).toBe(false);
});

test('a lock that was lost before its code began is not kept: the next call of the transaction acquires it anew', async () => {
  const acquire = store.acquire.bind(store);
  jest.spyOn(store, 'acquire').mockImplementationOnce(async (hold, place) => {
    const reply = await acquire(hold, place);
    await others.operations.forceRelease('k', { fence: reply.fence as number });
    return reply;
  });
  const { begun, end } = begin(async () => {
    const first = await locks.withLock('k', never).catch((error: unknown) => error);
    return [first, await locks.withLock('k', () => 'in')];
  });
  expect(await begun).toEqual([expect.objectContaining({ code: 'LOCK_LOST', reason: 'forced' }), 'in']);
  await end();
});
