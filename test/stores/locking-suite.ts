import { jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { currentLock, assertLocked } from '../../lib/nest/current-lock';
import { outsideLocks } from '../../lib/core/calls/call-tree';
import { LockConfigurationError, LockLostError, LockNotAcquiredError, type LockError } from '../../lib/core/words/errors';
import type { Lock } from '../../lib/core/words/lock';
import { LOCK_CHANNEL, type LockEvent } from '../../lib/core/words/lock-event';
import type { ForcedListener, LockStore, Operator } from '../../lib/core/seam/lock-store';
import type { LockService } from '../../lib/nest/lock.service';
import { makeLocks as makeService, type TestSettings } from '../support/make-locks';
import { Random, SEED } from '../support/random';
import { connectTo, wasSlow } from '../support/sends-again';
import { sideBySide } from '../support/side-by-side';
import type { StoreKind, StorePlace } from '../support/stores';
import { saying } from '../support/saying';
import { until } from '../support/until';

/** Counts how many run at once, and the most that ever did. */
class Section {
  most = 0;
  runs = 0;
  #now = 0;

  run = async (ms = 5): Promise<void> => {
    this.#now++;
    this.runs++;
    this.most = Math.max(this.most, this.#now);
    await sleep(ms);
    this.#now--;
  };
}

async function failureOf(call: Promise<unknown>): Promise<Error> {
  return call.then(
    () => Promise.reject(new Error('nothing was thrown')),
    (error: Error) => error,
  );
}

/** A service whose calls wait for as long as a busy machine needs, where they do not say otherwise. */
function makeLocks(store: LockStore, settings: TestSettings = {}): LockService {
  return makeService(store, { wait: 60_000, ...settings });
}

/** Expects that nobody can acquire the lock before a time; where an attempt is answered later, it says nothing. */
async function expectKept(locks: LockService, key: string, endsAt: number): Promise<void> {
  const lock = await locks.tryAcquire(key);
  const isTooEarly = performance.now() < endsAt;
  await lock?.release();
  expect(lock !== null && isTooEarly).toBe(false);
}

/** Locks for a method that ends at once; answers when it was called, which is before its `minHold` began. */
async function endAtOnce(locks: LockService, key: string, options: { readonly ttl: number; readonly minHold: number }): Promise<number> {
  const calledAt = performance.now();
  await locks.withLock(key, options, () => undefined);
  return calledAt;
}

/** A promise, and what resolves it. */
function gate(): [passed: Promise<void>, open: () => void] {
  let open = (): void => undefined;
  return [new Promise<void>((resolve) => (open = resolve)), () => open()];
}

/**
 * Has two calls inside a lock take two keys in opposite order, one call inside the other, once both have their first
 * one; answers why calls were refused.
 */
async function oppose(
  locks: LockService,
  around: string | string[],
  [a, b]: readonly [string, string],
  take = (key: string): Promise<unknown> => locks.withLock(key, () => undefined),
): Promise<LockNotAcquiredError[]> {
  let come = 0;
  const [met, meet] = gate();
  const both = (first: string, second: string): Promise<unknown> =>
    locks.withLock(first, async () => {
      await (++come === 2 ? meet() : met);
      await take(second);
    });
  const results = await locks.withLock(around, () => Promise.allSettled([both(a, b), both(b, a)]));
  return results.flatMap((result) => (result.status === 'rejected' ? [result.reason as LockNotAcquiredError] : []));
}

/** The behaviour of locks that callers see, whichever store the locks are in. */
export function lockingSuite(place: () => StorePlace, kind: StoreKind): void {
  const beside = sideBySide({
    prepare: async () => ({ locks: makeLocks(await connectTo(place())), key: `key ${randomUUID()}` }),
    atOnce: 12,
  });

  /** A service on a store of its own, of which some operations are other ones. */
  async function makeOwn(change: (store: LockStore) => Partial<LockStore>, settings?: TestSettings): Promise<LockService> {
    const store = await connectTo(place());
    return makeLocks({ ...bound(store), ...change(store) }, settings);
  }
  /** It does not end with its service. */
  const lasting = (): Partial<LockStore> => ({ close: async () => undefined });

  beside('callers of one process run one after the other, first come first', async ({ locks, key }) => {
    const section = new Section();
    const order: number[] = [];
    await Promise.all(
      Array.from({ length: 20 }, (_, caller) =>
        locks.withLock(key, async () => {
          order.push(caller);
          await section.run(2);
        }),
      ),
    );
    expect(section.most).toBe(1);
    expect(order).toEqual(order.toSorted((a, b) => a - b));
  });

  beside('workers that read, sleep and write a plain counter lose nothing, in three processes', async ({ locks, key }) => {
    const services = [locks, makeLocks(await connectTo(place())), makeLocks(await connectTo(place()))];
    const random = new Random(SEED);
    let counter = 0;
    const work = async (service: LockService): Promise<void> => {
      for (let round = 0; round < 10; round++) {
        await service.withLock(key, async () => {
          const seen = counter;
          await sleep(random.between(0, 3));
          counter = seen + 1;
        });
      }
    };
    await Promise.all(services.flatMap((service) => [work(service), work(service)]));
    expect(counter).toBe(60);
  });

  beside('different keys do not wait for each other', async ({ locks, key }) => {
    await locks.withLock(key, { wait: 0 }, () => outsideLocks(() => locks.withLock(`${key} other`, { wait: 0 }, () => 1)));
  });

  beside('a nested call re-enters with the same fence, and the lock is free only after the outermost', async ({ locks, key }) => {
    await locks.withLock(key, async (outer) => {
      await locks.withLock(key, { wait: 0 }, async (inner) => {
        expect(inner.fence).toBe(outer.fence);
      });
      expect(await locks.operations.inspect(key)).toMatchObject({ holds: 1, fence: outer.fence });
    });
    expect(await locks.operations.inspect(key)).toBeNull();
  });

  beside("reentry: 'never' acquires anew, and so waits for its own caller", async ({ locks, key }) => {
    const failure = locks.withLock(key, () => locks.withLock(key, { reentry: 'never', wait: 30 }, () => 1));
    await expect(failure).rejects.toBeInstanceOf(LockNotAcquiredError);
  });

  beside('children started in parallel run one after the other, at every depth', async ({ locks, key }) => {
    const section = new Section();
    const child = (): Promise<void> => locks.withLock(key, () => section.run());
    await locks.withLock(key, () => Promise.all([child(), child(), locks.withLock(key, () => Promise.all([child(), child()]))]));
    expect(section).toMatchObject({ most: 1, runs: 4 });
  });

  beside('a child that outlives its parent keeps the lock', async ({ locks, key }) => {
    const section = new Section();
    let child: Promise<void> | undefined;
    await locks.withLock(key, () => {
      child = locks.withLock(key, () => section.run(40));
    });
    await locks.withLock(key, () => section.run(1));
    await child;
    expect(section).toMatchObject({ most: 1, runs: 2 });
    expect(await locks.operations.inspect(key)).toBeNull();
  });

  beside('a call whose ancestors have all left is a new acquisition', async ({ locks, key }) => {
    let late: Promise<number> | undefined;
    const [gone, goOn] = gate();
    const first = await locks.withLock(key, (lock) => {
      late = gone.then(() => locks.withLock(key, ({ fence }) => fence));
      return lock.fence;
    });
    goOn();
    expect(await late).toBeGreaterThan(first);
  });

  beside('outsideLocks makes a call of nobody', async ({ locks, key }) => {
    await locks.withLock(key, async () => {
      await outsideLocks(async () => {
        expect(currentLock()).toBeUndefined();
        await expect(locks.withLock(key, { wait: 0 }, () => 1)).rejects.toBeInstanceOf(LockNotAcquiredError);
      });
    });
  });

  beside('siblings that nest in opposite order are told of the cycle at once', async ({ locks, key }) => {
    const keys = [`${key} a`, `${key} b`] as const;
    const failures = await oppose(locks, [...keys], keys);
    expect(failures).toEqual([expect.objectContaining({ reason: 'cycle', detail: expect.stringContaining(' → ') })]);
  });

  beside('siblings that take two locks anew in opposite order are told of the cycle at once', async ({ locks, key }) => {
    const failures = await oppose(locks, `${key} root`, [`${key} a`, `${key} b`]);
    expect(failures).toEqual([expect.objectContaining({ reason: 'cycle' })]);
  });

  beside('a wait ends with an error that names the key, the time and the holder', async ({ locks, key }) => {
    const error = await locks.withLock(key, { by: 'Balance.credit' }, () =>
      outsideLocks(() => failureOf(locks.withLock(key, { wait: 300 }, () => 1))),
    );
    expect(error).toBeInstanceOf(LockNotAcquiredError);
    expect((error as LockError).detail).toMatch(
      new RegExp(`^Lock "${key}" was not acquired within 300 ms: it is held by .*Balance\\.credit since [\\d.]+ m?s\\. Raise wait`),
    );
    expect((error as LockNotAcquiredError).waitedMs).toBeGreaterThanOrEqual(295);
    expect((error as LockNotAcquiredError).retryAfterMs).toBeGreaterThan(1_000);
    expect((error as LockNotAcquiredError).reason).toBe('busy');
  });

  beside('a busy lock of another process is had soon after it was released', async ({ locks, key }) => {
    const elsewhere = makeLocks(await connectTo(place()));
    const held = await elsewhere.acquire(key, { ttl: 60_000 });
    // Well before the end of the lease.
    const waiting = locks.withLock(key, { wait: 15_000 }, () => 'had');
    await until('that it waits', async () => (await locks.operations.health()).waitingHere === 1);
    await held.release();
    expect(await waiting).toBe('had');
  });

  beside('an aborted signal ends the wait at once, and the next in line is served', async ({ locks, key }) => {
    const held = await locks.acquire(key);
    const controller = new AbortController();
    const aborted = failureOf(locks.withLock(key, { signal: controller.signal }, () => 1));
    const next = locks.withLock(key, () => 2);
    controller.abort(new Error('the user left'));
    const error = await aborted;
    expect(error).toMatchObject({ code: 'LOCK_NOT_ACQUIRED', reason: 'aborted', cause: new Error('the user left') });
    await held.release();
    expect(await next).toBe(2);
    await expect(locks.withLock(key, { signal: controller.signal }, () => 1)).rejects.toMatchObject({ reason: 'aborted' });
  });

  beside('an aborted call on several keys lets go of the first while it waits for the next', async ({ locks, key }) => {
    const [a, b] = [`${key} a`, `${key} b`];
    const held = await locks.acquire(b);
    const controller = new AbortController();
    const slow = await makeOwn((store) => ({ acquire: async (hold) => sleep(40).then(() => store.acquire(hold)) }));
    const heldToo = slow.withLock(b, { wait: 0 }, () => 1).catch(() => undefined);
    const call = slow.withLock([a, b], { signal: controller.signal, wait: 10_000 }, () => 1);
    setTimeout(() => controller.abort(), 20);
    await expect(call).rejects.toMatchObject({ reason: 'aborted' });
    await heldToo;
    await until('the first key is free', async () => (await locks.operations.inspect(a)) === null);
    await held.release();
  });

  beside('a store that grants only after the lease is over is a failure of the store, and nothing stays taken', async ({ locks, key }) => {
    const slow = await makeOwn((store) => ({ acquire: async (hold) => store.acquire(hold).then((reply) => sleep(150, reply)) }));
    const error = await failureOf(slow.acquire(key, { ttl: 100, wait: 0 }));
    expect(error).toMatchObject({ code: 'LOCK_STORE' });
    // On a busy machine there may be no grant at all.
    expect(wasSlow(error) ? 'no grant' : (error as LockError).detail).toMatch(
      /^no grant$|came after its own lease of 100 ms was over\. Raise ttl/,
    );
    expect(await locks.withLock(key, () => 1)).toBe(1);
  });

  beside('too many waiters are refused with a clear error', async ({ key }) => {
    const few = makeLocks(await connectTo(place()), { maxWaiters: 1 });
    const held = await few.acquire(key);
    const first = few.withLock(key, () => 1);
    const error = await failureOf(few.withLock(key, () => 2));
    expect(error).toMatchObject({ code: 'LOCK_NOT_ACQUIRED', reason: 'tooManyWaiters' });
    expect((error as LockError).detail).toMatch(/raise maxWaiters/);
    await held.release();
    expect(await first).toBe(1);
  });

  beside('too many waiters of all keys together are refused, and nobody who waits already', async ({ locks, key }) => {
    const few = makeLocks(await connectTo(place()), { maxWaiters: { perProcess: 2 } });
    const keys = [`${key} a`, `${key} b`, `${key} c`];
    const held = await Promise.all(keys.map((each) => locks.acquire(each)));
    const first = few.withLock(`${key} a`, () => 1);
    const second = few.withLock(`${key} b`, () => 2);
    await until('that both wait', async () => (await few.operations.health()).waitingHere === 2);
    const error = await failureOf(few.withLock(`${key} c`, () => 3));
    expect(error).toMatchObject({ code: 'LOCK_NOT_ACQUIRED', reason: 'tooManyWaiters' });
    expect((error as LockError).detail).toMatch(/raise maxWaiters/);
    await expect(few.withLock(`${key} c`, { wait: 0 }, () => 3)).rejects.toMatchObject({ reason: 'busy' });
    await Promise.all(held.map((lock) => lock.release()));
    expect(await Promise.all([first, second])).toEqual([1, 2]);
  });

  beside(
    'calls that wait for their turn inside a lock are not refused where too many wait, and are not counted',
    async ({ locks, key }) => {
      const notes: string[] = [];
      const debug = (note: string): void => void notes.push(note);
      const few = makeLocks(await connectTo(place()), { maxWaiters: { perKey: 1, perProcess: 1 }, debug });
      const elsewhere = await locks.acquire(`${key} elsewhere`);
      const [refusal, goOn] = gate();
      const served = await few.withLock(key, async () => {
        const inside = [1, 2, 3].map((child) => few.withLock(key, () => refusal.then(() => child)));
        const outside = outsideLocks(() => few.withLock(`${key} elsewhere`, () => 4));
        await until('the store has answered the one outside, which waits from then on', () =>
          notes.some((note) => note.startsWith('busy ')),
        );
        const more = few.withLock(key, () => 5);
        const refused = outsideLocks(() => failureOf(few.withLock(`${key} elsewhere`, () => 6)));
        expect(await refused).toMatchObject({ reason: 'tooManyWaiters' });
        goOn();
        await elsewhere.release();
        return Promise.all([...inside, outside, more]);
      });
      expect(served).toEqual([1, 2, 3, 4, 5]);
    },
  );

  beside("the body's own result and exception pass through unchanged", async ({ locks, key }) => {
    class Teapot extends Error {}
    const teapot = new Teapot('short and stout');
    await expect(locks.withLock(key, () => Promise.reject(teapot))).rejects.toBe(teapot);
    await expect(
      locks.withLock(key, () => {
        throw teapot;
      }),
    ).rejects.toBe(teapot);
    expect(await locks.withLock(key, () => 7)).toBe(7);
    expect(await locks.operations.inspect(key)).toBeNull();
  });

  beside('a body longer than its ttl keeps its lock', async ({ locks, key }) => {
    const elsewhere = makeLocks(await connectTo(place()));
    await locks.withLock(key, { ttl: 4_000 }, async (lock) => {
      await sleep(4_300);
      expect(lock.isHeld()).toBe(true);
      expect(await elsewhere.tryAcquire(key)).toBeNull();
    });
  });

  beside('a fixed lease ends after its ttl, aborts the signal and rejects the call', async ({ locks, key }) => {
    let aborted: unknown;
    const call = locks.withLock(key, { ttl: 400, renew: false }, async (lock) => {
      lock.signal.addEventListener('abort', () => (aborted = lock.signal.reason));
      await sleep(600);
      expect(lock.isHeld()).toBe(false);
      expect(lock.remainingMs()).toBe(0);
      expect(() => lock.assertHeld()).toThrow(LockLostError);
      await expect(locks.withLock(key, () => 1)).rejects.toBeInstanceOf(LockLostError);
    });
    await expect(call).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
    expect(aborted).toBeInstanceOf(LockLostError);
  });

  beside('lock.extend() keeps a fixed lease for longer, and the lock is free after its release', async ({ locks, key }) => {
    const elsewhere = makeLocks(await connectTo(place()));
    const lock = await locks.acquire(key, { ttl: 2_500, renew: false });
    await lock.extend('8s');
    const kept = lock.remainingMs();
    const sent = performance.now();
    await sleep(2_700);
    expect(await elsewhere.tryAcquire(key)).toBeNull();
    expect(kept).toBeGreaterThan(2_500);
    // A machine that stood still for longer than the lease has lost it rightly.
    expect(lock.isHeld() || performance.now() - sent > kept).toBe(true);
    await lock.release();
    await (await elsewhere.acquire(key)).release();
  });

  beside('a lost lease aborts the signal before the key can be taken again', async ({ locks, key }) => {
    const events: string[] = [];
    const call = locks.withLock(key, { ttl: 400, renew: false }, async (lock) => {
      lock.signal.addEventListener('abort', () => events.push('told'));
      await sleep(800);
    });
    const next = locks.withLock(key, () => events.push('next'));
    await expect(call).rejects.toBeInstanceOf(LockLostError);
    await next;
    expect(events).toEqual(['told', 'next']);
  });

  beside('the local turn passes on at the loss, not at the end of a hung body', async ({ locks, key }) => {
    const ended: string[] = [];
    const [next, goOn] = gate();
    const hung = failureOf(locks.withLock(key, { ttl: 400, renew: false }, () => next.then(() => ended.push('hung'))));
    await locks.withLock(key, () => ended.push('next'));
    goOn();
    expect(await hung).toBeInstanceOf(LockLostError);
    expect(ended).toEqual(['next', 'hung']);
  });

  beside('a blocked event loop that outlives the lease is noticed before any timer could tell', async ({ locks, key }) => {
    const call = locks.withLock(key, { ttl: 250 }, async (lock) => {
      const { signal } = lock;
      const endsAt = performance.now() + 300;
      while (performance.now() < endsAt) {
        // The loop is blocked: no renewal, and no timer.
      }
      expect(lock.isHeld()).toBe(false);
      expect(signal.aborted).toBe(false);
      expect(() => lock.assertHeld()).toThrow(LockLostError);
      expect(signal.aborted).toBe(true);
    });
    await expect(call).rejects.toMatchObject({ reason: 'expired' });
  });

  beside('maxHold tells the code first, then lets the lease run out', async ({ locks, key }) => {
    const elsewhere = makeLocks(await connectTo(place()));
    const call = locks.withLock(key, { ttl: 3_000, maxHold: 250 }, async (lock) => {
      await once(lock.signal, 'abort');
      expect(lock.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'maxHold' });
      expect(lock.isHeld()).toBe(true);
      expect(await elsewhere.tryAcquire(key)).toBeNull();
      await until('that the lease has run out', () => !lock.isHeld());
    });
    await expect(call).rejects.toMatchObject({ reason: 'maxHold' });
  });

  beside('code that ends after it was told of maxHold, but within its lease, succeeds', async ({ locks, key }) => {
    expect(await locks.withLock(key, { ttl: 5_000, maxHold: 20 }, () => sleep(60, 'done'))).toBe('done');
  });

  beside('minHold keeps the lock taken though the result returns at once', async ({ locks, key }) => {
    const calledAt = await endAtOnce(locks, key, { minHold: 4_500, ttl: 2_500 });
    expect(performance.now() - calledAt).toBeLessThan(4_000);
    await sleep(2_800 - (performance.now() - calledAt));
    await expectKept(locks, key, calledAt + 4_500);
    expect(await locks.withLock(key, () => performance.now() - calledAt)).toBeGreaterThanOrEqual(4_490);
  });

  beside("onBusy: 'skip' resolves undefined without waiting, and a function answers instead", async ({ locks, key }) => {
    const held = await locks.acquire(key);
    expect(await locks.withLock(key, { onBusy: 'skip' }, () => 1)).toBeUndefined();
    expect(await locks.withLock(key, { onBusy: (error) => error.reason as string, wait: 20 }, () => 'ran')).toBe('busy');
    await held.release();
    expect(await locks.withLock(key, { onBusy: 'skip' }, () => 1)).toBe(1);
    const inner = new LockNotAcquiredError('of the body', 'other', { reason: 'busy', waitedMs: 0 });
    await expect(locks.withLock(key, { onBusy: 'skip' }, () => Promise.reject(inner))).rejects.toBe(inner);
  });

  beside('acquire gives a handle; code beside it is not inside, code in run() is', async ({ locks, key }) => {
    const lock = await locks.acquire(key);
    expect(currentLock()).toBeUndefined();
    const error = await failureOf(locks.withLock(key, { wait: 30 }, () => 1));
    expect((error as LockError).detail).toMatch(/handle from acquire\(\).*lock\.run/);
    expect(await lock.run(() => locks.withLock(key, { wait: 0 }, (inner) => inner.fence))).toBe(lock.fence);
    await lock.release();
    expect(await locks.operations.inspect(key)).toBeNull();
  });

  beside('a handle taken inside a locked call is named when a sibling waits for it in vain', async ({ locks, key }) => {
    await locks.withLock(key, async () => {
      await using handle = await locks.acquire(key);
      expect(handle.isHeld()).toBe(true);
      const error = await failureOf(locks.withLock(key, { wait: 30 }, () => 1));
      expect((error as LockError).detail).toMatch(/handle from acquire\(\).*lock\.run/);
    });
  });

  beside('a lock released twice frees nothing a second time, and says so', async ({ locks, key }) => {
    const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    const lock = await locks.acquire(key);
    await lock.release();
    const next = await locks.acquire(key);
    await lock.release();
    await lock[Symbol.asyncDispose]();
    const warnings = warn.mock.calls.filter(([text]) => String(text).includes(key));
    expect(warnings).toEqual([[expect.stringMatching(`Lock "${key}" was released twice.*Release it in one place`), 'LockWarning']]);
    warn.mockRestore();
    expect((await locks.operations.inspect(key))?.fence).toBe(next.fence);
    await next.release();
  });

  beside('a handle that is looked at long after its release has lost nothing, and passes nobody on', async ({ key }) => {
    const troubles: string[] = [];
    const service = makeLocks(await connectTo(place()), { onTrouble: ({ type }) => troubles.push(type) });
    const lock = await service.acquire(key, { ttl: 2_500 });
    await lock.release();
    const section = new Section();
    const others = Promise.all([service.withLock(key, () => section.run(3_000)), service.withLock(key, () => section.run(10))]);
    await sleep(2_600);
    expect(lock.isHeld()).toBe(false);
    expect(() => lock.assertHeld()).toThrow(saying(/released before/));
    expect(lock.signal.aborted).toBe(false);
    await others;
    expect(section.most).toBe(1);
    expect(troubles).toEqual([]);
  });

  beside("a released lock's run throws, naming the key and the next step", async ({ locks, key }) => {
    const lock = await locks.acquire(key);
    await lock.release();
    expect(lock.isHeld()).toBe(false);
    expect(() => lock.run(() => 1)).toThrow(LockLostError);
    expect(() => lock.run(() => 1)).toThrow(saying(new RegExp(`"${key}" was released before\\. Acquire it again`)));
  });

  beside('a lock released early inside its body lets the result pass, and nested calls hear of it', async ({ locks, key }) => {
    const result = await locks.withLock(key, async (lock) => {
      await lock.release();
      await expect(locks.withLock(key, () => 1)).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'released' });
      return 'result';
    });
    expect(result).toBe('result');
    expect(await locks.withLock(key, { wait: 0 }, () => 1)).toBe(1);
  });

  beside('tryAcquire never waits and never passes a caller who does', async ({ locks, key }) => {
    const lock = (await locks.tryAcquire(key)) as Lock;
    expect(lock.isHeld()).toBe(true);
    expect(await locks.tryAcquire(key)).toBeNull();
    const waiting = locks.withLock(key, () => sleep(20));
    const released = lock.release();
    expect(await locks.tryAcquire(key)).toBeNull();
    await Promise.all([released, waiting]);
  });

  beside('several keys are held together, deduplicated and sorted, each with its own fence', async ({ locks, key }) => {
    const [a, b] = [`${key} a`, `${key} b`];
    await locks.withLock([b, a, b], async (lock) => {
      expect(lock.keys).toEqual([a, b]);
      expect(lock.fenceOf(b)).toBeGreaterThan(0);
      expect(lock.fenceOf(a)).not.toBe(lock.fenceOf(b));
      expect(() => lock.fence).toThrow(LockConfigurationError);
      expect(() => lock.fenceOf('other')).toThrow(saying(/is not part of this lock/));
      expect(assertLocked(a).fenceOf(a)).toBe(lock.fenceOf(a));
      expect(await locks.withLock(b, { wait: 0 }, (inner) => inner.fence)).toBe(lock.fenceOf(b));
    });
    expect(await locks.operations.inspect(a)).toBeNull();
    expect(await locks.operations.inspect(b)).toBeNull();
  });

  beside('several keys in opposite orders never deadlock', async ({ locks, key }) => {
    const [a, b] = [`${key} a`, `${key} b`];
    const section = new Section();
    await Promise.all(Array.from({ length: 20 }, (_, caller) => locks.withLock(caller % 2 ? [a, b] : [b, a], () => section.run(1))));
    expect(section).toMatchObject({ most: 1, runs: 20 });
  });

  beside('several keys are all or nothing', async ({ locks, key }) => {
    const [a, b] = [`${key} a`, `${key} b`];
    const held = await locks.acquire(b);
    await expect(locks.withLock([a, b], { wait: 30 }, () => 1)).rejects.toMatchObject({ code: 'LOCK_NOT_ACQUIRED', key: b });
    expect(await locks.operations.inspect(a)).toBeNull();
    await held.release();
  });

  beside('a key that is lost while the next is waited for is taken again', async ({ locks, key }) => {
    const [a, b] = [`${key} a`, `${key} b`];
    const elsewhere = makeLocks(await connectTo(place()));
    const held = await elsewhere.acquire(b);
    const both = locks.withLock([a, b], { ttl: 5_000 }, (lock) => {
      expect(lock.signal.aborted).toBe(false);
      return [lock.fenceOf(a), lock.fenceOf(b)];
    });
    await until('the first key is held', async () => (await elsewhere.operations.inspect(a)) !== null);
    const { fence } = (await elsewhere.operations.inspect(a)) as { fence: number };
    expect(await elsewhere.operations.forceRelease(a, { fence })).toBe(true);
    await until('the loss', async () => (await locks.operations.health()).heldHere === 0);
    await held.release();
    const [fenceOfA] = await both;
    expect(fenceOfA).toBeGreaterThan(fence);
  });

  beside('a ticket enters the running lock as from another process, and the lock is free when both have left', async ({ locks, key }) => {
    const elsewhere = makeLocks(await connectTo(place()));
    let inside: Promise<void> | undefined;
    const [left, leave] = gate();
    await locks.withLock(key, async (lock) => {
      const ticket = lock.makeTicket();
      await outsideLocks(
        () =>
          new Promise<void>((entered) => {
            inside = elsewhere.withLock(key, { ticket, wait: 0 }, async (joined) => {
              expect(joined.fence).toBe(lock.fence);
              await elsewhere.withLock(key, { wait: 0 }, (nested) => expect(nested.fence).toBe(lock.fence));
              entered();
              await left;
            });
          }),
      );
    });
    expect(await locks.tryAcquire(key)).toBeNull();
    leave();
    await inside;
    expect(await locks.operations.inspect(key)).toBeNull();
  });

  beside('a ticket of a lock that has ended is lost, also after the same context locked again', async ({ locks, key }) => {
    const ticket = await locks.withLock(key, (lock) => lock.makeTicket());
    const error = await failureOf(locks.withLock(key, { ticket }, () => 1));
    expect(error).toMatchObject({ code: 'LOCK_LOST', key });
    expect((error as LockError).detail).toMatch(/the lock of this ticket has ended\. A ticket enters a running lock only/);
    await locks.withLock(key, () => expect(locks.withLock(key, { ticket }, () => 1)).rejects.toBeInstanceOf(LockLostError));
    expect(await locks.operations.inspect(key)).toBeNull();
  });

  beside('a ticket that is none, or of another key, is refused with a clear error', async ({ locks, key }) => {
    await expect(locks.withLock(key, { ticket: 'nonsense' }, () => 1)).rejects.toThrow(saying(/the ticket is malformed/));
    await expect(locks.withLock(key, { ticket: Buffer.from('[[1]]').toString('base64url') }, () => 1)).rejects.toThrow(saying(/malformed/));
    const ticket = await locks.withLock('another key', (lock) => lock.makeTicket());
    await expect(locks.withLock(key, { ticket }, () => 1)).rejects.toThrow(saying(/the ticket is for "another key"/));
  });

  beside('a ticket works within its own process too, where its holder waits for it', async ({ locks, key }) => {
    await locks.withLock(key, (lock) => outsideLocks(() => locks.withLock(key, { ticket: lock.makeTicket(), wait: 0 }, () => 1)));
    expect(await locks.operations.inspect(key)).toBeNull();
  });

  beside('a lazy thenable that the body returns runs once, and inside the lock', async ({ locks, key }) => {
    const runs: unknown[] = [];
    const query = {
      // oxlint-disable-next-line no-thenable -- as query builders are
      then(resolve: (value: string) => void): void {
        runs.push(currentLock()?.keys[0]);
        setTimeout(() => resolve('rows'), 5);
      },
    };
    expect(await locks.withLock(key, () => query as PromiseLike<string>)).toBe('rows');
    expect(runs).toEqual([key]);
  });

  beside('a plain result may have a property called then', async ({ locks, key }) => {
    // oxlint-disable-next-line no-thenable -- a JSON schema has one
    const schema = { if: 1, then: { type: 'string' } };
    expect(await locks.withLock(key, () => schema as unknown)).toBe(schema);
  });

  beside("a lost lease tells its own call, in that call's context, while another call runs", async ({ locks, key }) => {
    const seen: unknown[] = [];
    const other = `${key} other`;
    const isSeen = (): Promise<void> => until('what was seen', () => seen.length === 2);
    // It is renewed before the other lease ends.
    const running = locks.withLock(other, { ttl: 3_000 }, isSeen);
    const losing = locks.withLock(key, { ttl: 1_200, renew: false }, async (lock) => {
      lock.signal.addEventListener('abort', () => {
        seen.push(currentLock()?.keys[0]);
        void locks.withLock(other, { wait: 0 }, () => 1).catch((error: LockNotAcquiredError) => seen.push(error.reason));
      });
      await isSeen();
    });
    await expect(losing).rejects.toBeInstanceOf(LockLostError);
    await running;
    expect(seen).toEqual([key, 'busy']);
  });

  beside('minHold and maxHold count from when all keys are held, and not for a call that never ran', async ({ locks, key }) => {
    const [a, b] = [`${key} a`, `${key} b`];
    const held = await locks.acquire(b);
    expect(await locks.withLock([a, b], { minHold: 30_000, onBusy: 'skip' }, () => 1)).toBeUndefined();
    expect(await locks.operations.inspect(a)).toBeNull();
    const both = locks.withLock([a, b], { maxHold: 1_500 }, (lock) => lock.signal.aborted);
    await sleep(1_600);
    await held.release();
    expect(await both).toBe(false);
  });

  beside('minHold that reaches past the lease ends in time, also where nobody is left to release', async ({ locks, key }) => {
    const service = await makeOwn(lasting);
    const calledAt = await endAtOnce(service, key, { minHold: 4_000, ttl: 2_500 });
    await sleep(2_800 - (performance.now() - calledAt));
    await service.shutdown();
    const taken = await locks.withLock(key, () => performance.now() - calledAt);
    expect(taken).toBeGreaterThanOrEqual(3_990);
    expect(taken).toBeLessThan(2 * 4_000);
  });

  beside('a lock that lingers for minHold after maxHold is renewed once', async ({ locks, key }) => {
    let renewals = 0;
    const renew = (store: LockStore): Partial<LockStore> => ({
      renew: async (holds) => {
        const replies = await store.renew(holds);
        // One that was not answered is repeated.
        renewals++;
        return replies;
      },
    });
    const counted = await makeOwn(renew, { maxHold: 20 });
    await counted.withLock(key, { ttl: 5_000, minHold: 8_000 }, () => sleep(60));
    await until('the renewal', () => renewals > 0);
    await sleep(1_000);
    expect(renewals).toBe(1);
    expect(await locks.tryAcquire(key)).toBeNull();
  });

  for (const [title, pauseMs] of [
    ['minHold lasts also where the application shuts down as soon as the method has ended', 0],
    ['shutdown leaves a minHold to run out', 50],
  ] as const) {
    beside(title, async ({ locks, key }) => {
      const service = await makeOwn(lasting);
      const calledAt = await endAtOnce(service, key, { ttl: 2_500, minHold: 4_500 });
      await (pauseMs > 0 && sleep(pauseMs));
      await service.shutdown();
      await sleep(2_800 - (performance.now() - calledAt));
      await expectKept(locks, key, calledAt + 4_500);
      expect(await locks.withLock(key, () => 1)).toBe(1);
    });
  }

  beside('shutdown waits for a release that is on its way, and a second shutdown for the first', async ({ locks, key }) => {
    const events: string[] = [];
    let isReleasing = false;
    const slow = await makeOwn(
      (store) => ({
        release: async (hold) => {
          isReleasing = true;
          await sleep(200);
          events.push('released');
          return store.release(hold);
        },
        close: async () => void events.push('closed'),
      }),
      { onTrouble: ({ type }) => events.push(type) },
    );
    const call = slow.withLock(key, () => undefined);
    await until('the release', () => isReleasing);
    await Promise.all([slow.shutdown(), slow.shutdown(), call]);
    expect(events.slice(0, 2)).toEqual(['released', 'closed']);
    expect(await locks.operations.inspect(key)).toBeNull();
  });

  beside('a call on several keys that waits for a call which wants one of them is told of the cycle', async ({ locks, key }) => {
    const [a, b] = [`${key} a`, `${key} b`];
    const inner = locks.withLock(b, async () => {
      await until('that the other call waits', async () => (await locks.operations.health()).waitingHere === 1);
      return locks.withLock(a, () => 'inner').catch((error: LockNotAcquiredError) => error.reason);
    });
    const both = locks.withLock([a, b], () => 'both');
    expect(await Promise.all([inner, both])).toEqual(['cycle', 'both']);
  });

  beside('a cycle is found also where a lock was still being acquired when the first of them began to wait', async ({ key }) => {
    const [a, b] = [`${key} a`, `${key} b`];
    const slow = await makeOwn((store) => ({
      acquire: async (hold) => sleep(hold.key === b ? 80 : 0).then(() => store.acquire(hold)),
    }));
    const both = (first: string, second: string): Promise<void> =>
      slow.withLock(first, async () => {
        await sleep(40);
        await slow.withLock(second, () => undefined);
      });
    const results = await slow.withLock(`${key} root`, () => Promise.allSettled([both(a, b), both(b, a)]));
    expect(results.flatMap((result) => (result.status === 'rejected' ? [(result.reason as LockNotAcquiredError).reason] : []))).toEqual([
      'cycle',
    ]);
  });

  beside('a release that is not awaited is done before the call resolves', async ({ locks, key }) => {
    await locks.withLock(key, (lock) => void lock.release());
    expect(await locks.operations.inspect(key)).toBeNull();
  });

  beside('onBusy does not answer for a call that was aborted', async ({ locks, key }) => {
    const held = await locks.acquire(key);
    const call = locks.withLock(key, { signal: AbortSignal.timeout(20), onBusy: () => 'answer' }, () => 'ran');
    await expect(call).rejects.toMatchObject({ reason: 'aborted' });
    await held.release();
  });

  beside('after forceRelease the holder loses the lock, and its old fence takes nothing from a later owner', async ({ locks, key }) => {
    let old = 0;
    const operator = makeLocks(await connectTo(place()));
    // Where nobody is notified, the next renewal finds it.
    const [reason, ttl] = kind.offers.includes('forced') ? ['forced', 60_000] : ['expired', 3_000];
    const call = locks.withLock(key, { ttl }, async (lock) => {
      old = lock.fence;
      await expect(operator.operations.forceRelease(key, { fence: lock.fence - 1 })).resolves.toBe(false);
      await expect(operator.operations.forceRelease(key, { fence: lock.fence })).resolves.toBe(true);
      await until('the loss', () => lock.signal.aborted);
      expect(lock.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason });
    });
    await expect(call).rejects.toMatchObject({ reason });
    const later = async (): Promise<boolean> => operator.operations.forceRelease(key, { fence: old });
    expect(await operator.withLock(key, { wait: 0 }, later)).toBe(false);
  });

  beside('assertLocked guards code that needs a lock', async ({ locks, key }) => {
    expect(() => assertLocked(key)).toThrow(saying(/is not held by the code that runs here\. Call it from/));
    await locks.withLock(key, (lock) => expect(assertLocked(key)).toBe(lock));
  });

  beside('shutdown rejects waiters and new calls, tells what runs and leaves nothing behind', async ({ locks, key }) => {
    const service = await makeOwn(lasting);
    let told: Error | undefined;
    const [entered, enter] = gate();
    const running = failureOf(
      service.withLock(key, async (lock) => {
        lock.signal.addEventListener('abort', () => (told = lock.signal.reason as Error));
        enter();
        await until('that it is told', () => told !== undefined);
        await sleep(100);
      }),
    );
    await entered;
    const waiting = failureOf(service.withLock(key, () => 1));
    await service.shutdown();
    expect(await waiting).toMatchObject({ code: 'LOCK_NOT_ACQUIRED', reason: 'shutdown' });
    expect(told).toMatchObject({ reason: 'shutdown' });
    expect(await running).toMatchObject({ code: 'LOCK_LOST', reason: 'shutdown' });
    await expect(service.withLock(key, () => 1)).rejects.toMatchObject({ reason: 'shutdown' });
    expect(await locks.operations.inspect(key)).toBeNull();
  });

  beside('a grant that comes after its caller was aborted is given back', async ({ locks, key }) => {
    const slow = await makeOwn((store) => ({ acquire: async (hold) => store.acquire(hold).then((reply) => sleep(60, reply)) }));
    const controller = new AbortController();
    const call = failureOf(slow.acquire(key, { signal: controller.signal, minHold: 30_000 }));
    await sleep(20);
    controller.abort();
    expect(await call).toMatchObject({ reason: 'aborted' });
    // Far sooner than minHold would let it. The attempt may still be on its way.
    expect(await slow.withLock(key, { wait: 15_000 }, () => 1)).toBe(1);
    expect(await locks.operations.inspect(key)).toBeNull();
  });

  beside('a call that is aborted at the moment of its grant keeps nothing, whatever its minHold', async ({ locks, key }) => {
    const controller = new AbortController();
    const abort = (event: unknown): void => void ((event as LockEvent).key === key && controller.abort());
    subscribe(LOCK_CHANNEL, abort);
    const error = await failureOf(locks.acquire(key, { signal: controller.signal, minHold: 30_000 }));
    unsubscribe(LOCK_CHANNEL, abort);
    expect(error).toMatchObject({ reason: 'aborted' });
    await until('the lock is free', async () => (await locks.operations.inspect(key)) === null);
  });

  beside('a call inside a lock of another application acquires anew', async ({ locks, key }) => {
    const other = makeLocks(await connectTo(place()));
    await locks.withLock(key, async () => {
      await expect(other.withLock(key, { wait: 0 }, () => 1)).rejects.toMatchObject({ reason: 'busy' });
    });
  });

  beside('keys are sorted by their code units, in every locale', async ({ locks, key }) => {
    await locks.withLock([`${key} a`, `${key} B`], (lock) => expect(lock.keys).toEqual([`${key} B`, `${key} a`]));
  });

  beside("onBusy: 'skip' does not wait unless told to", async ({ locks, key }) => {
    const held = await locks.acquire(key);
    const startedAt = performance.now();
    expect(await locks.withLock(key, { onBusy: 'skip' }, () => 1)).toBeUndefined();
    // Other calls wait for a minute.
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    const waiting = locks.withLock(key, { onBusy: 'skip', wait: 15_000 }, () => 'ran');
    await sleep(50);
    await held.release();
    expect(await waiting).toBe('ran');
  });

  beside('onBusy does not answer for a call that closes a cycle', async ({ locks, key }) => {
    const failures = await oppose(locks, `${key} root`, [`${key} a`, `${key} b`], (second) =>
      locks.withLock<unknown>(second, { onBusy: () => 'answer' }, () => undefined),
    );
    expect(failures).toEqual([expect.objectContaining({ reason: 'cycle' })]);
  });

  beside("the body's own error goes first, also where the lease was lost", async ({ locks, key }) => {
    const teapot = new Error('short and stout');
    const call = locks.withLock(key, { ttl: 400, renew: false }, async (lock) => {
      await sleep(600);
      expect(lock.isHeld()).toBe(false);
      throw teapot;
    });
    await expect(call).rejects.toBe(teapot);
  });

  beside('a message of a force release at another fence takes nothing away', async ({ key }) => {
    const listeners: ForcedListener[] = [];
    const service = await makeOwn((store) => ({
      operator: { ...operatorOf(store), onForced: (listener) => listeners.push(listener) },
    }));
    const lock = await service.acquire(key);
    listeners.forEach((listener) => listener(key, lock.fence - 1));
    expect(lock.isHeld()).toBe(true);
    listeners.forEach((listener) => listener(key, lock.fence));
    expect(lock.isHeld()).toBe(false);
  });

  beside('after a shutdown nothing is sent to the store any more', async ({ key }) => {
    let attempts = 0;
    const service = await makeOwn((store) => ({
      ...lasting(),
      acquire: async (hold) => {
        attempts++;
        return store.acquire(hold);
      },
    }));
    await service.shutdown();
    await expect(service.acquire(key)).rejects.toMatchObject({ reason: 'shutdown' });
    expect(attempts).toBe(0);
  });
}

/** The operations of a store as an object of its own, to replace one of them. */
function bound(store: LockStore): LockStore {
  return {
    expires: store.expires,
    keepsLimits: store.keepsLimits === true,
    ...(store.shared && { shared: true }),
    ...(store.permits && { permits: true }),
    turns: store.turns,
    tickets: store.tickets,
    operator: store.operator,
    acquire: (hold, at) => store.acquire(hold, at),
    renew: (holds) => store.renew(holds),
    release: (hold) => store.release(hold),
    close: () => store.close(),
  };
}

function operatorOf({ operator }: LockStore): Operator {
  return {
    inspect: async (key) => (await operator?.inspect(key)) ?? null,
    forceRelease: async (key, fence) => (await operator?.forceRelease(key, fence)) ?? false,
    onForced: (listener) => operator?.onForced?.(listener),
  };
}
