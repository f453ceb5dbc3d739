import type { Clock } from '../../../lib/core/seam/time';
import { systemClock } from '../../../lib/core/seam/time';
import type { AcquireReply, HoldRecord, Place } from '../../../lib/core/seam/lock-store';
import { LockStoreError } from '../../../lib/core/words/errors';
import type { LockSource } from '../../../lib/core/words/lock-telemetry';
import type { LockService } from '../../../lib/nest/lock.service';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import { makeLocks } from '../../support/make-locks';
import { playTime, sleep } from '../../support/virtual-time';

playTime();

/** Keeps when it was asked, and at which places. */
class AskedStore extends MemoryLockStore {
  readonly askedAt: number[] = [];
  readonly places: (Place | undefined)[] = [];
  answer: (hold: HoldRecord, reply: Promise<AcquireReply>) => Promise<AcquireReply> = async (_, reply) => reply;

  override async acquire(hold: HoldRecord, place?: Place): Promise<AcquireReply> {
    this.askedAt.push(performance.now());
    this.places.push(place);
    return this.answer(hold, super.acquire(hold, place));
  }
}

let store: AskedStore;
beforeEach(() => {
  store = new AskedStore();
});

const never = (): never => {
  throw new Error('The body ran.');
};
const away = async ({ key }: HoldRecord): Promise<never> => Promise.reject(new LockStoreError('away', key, { unknown: false }));

test('a store that keeps no order is asked again after 50 to 250 ms, each time after another pause', async () => {
  Object.defineProperty(store, 'turns', { value: undefined });
  store.answer = async (_, reply) => ({ ...(await reply), recheckMs: undefined }) as AcquireReply;
  const held = await makeLocks(store, { ttl: 600_000 }).acquire('k');
  const polls = makeLocks(store).withLock('k', { wait: 60_000 }, never);
  await expect(polls).rejects.toMatchObject({ reason: 'busy' });
  const pauses = store.askedAt.slice(2, -1).map((at, index) => at - (store.askedAt[index + 1] as number));
  expect(pauses.length).toBeGreaterThan(250);
  expect(Math.min(...pauses)).toBeGreaterThanOrEqual(50);
  expect(Math.min(...pauses)).toBeLessThan(100);
  expect(Math.max(...pauses)).toBeGreaterThan(200);
  expect(Math.max(...pauses)).toBeLessThanOrEqual(252);
  await held.release();
});

test('a lock whose lease is about to end is asked for once it has ended, and not before', async () => {
  store.answer = async (_, reply) =>
    store.askedAt.length > 1 ? reply : { remainingMs: 300, holder: { by: 'holder', heldMs: 0 }, recheckMs: 5_000 };
  expect(await makeLocks(store).withLock('k', () => 'entered')).toBe('entered');
  const [first = 0, second = 0, ...more] = store.askedAt;
  expect(second - first).toBeGreaterThan(300);
  expect(second - first).toBeLessThan(310);
  expect(more).toEqual([]);
});

test('a call that gives up releases what an attempt without an answer may have got, also where a later one found the lock busy', async () => {
  const held = await makeLocks(store).acquire('k', { ttl: 60_000 });
  const released: string[] = [];
  const release = store.release.bind(store);
  store.release = (hold) => {
    released.push(hold.id);
    return release(hold);
  };
  const asked: string[] = [];
  store.answer = async (hold, reply) => {
    const answer = await reply;
    if (asked.push(hold.id) === 1) {
      throw new LockStoreError('no reply', hold.key, { unknown: true });
    }
    return answer;
  };
  const locks = makeLocks(store);
  await expect(locks.withLock('k', { wait: 1_000 }, never)).rejects.toMatchObject({ reason: 'busy' });
  expect(asked.length).toBeGreaterThan(1);
  expect(new Set(asked)).toEqual(new Set(released));
  await held.release();
});

test('a call that does not wait has no place in the queue, whichever of its keys is busy', async () => {
  const held = await makeLocks(store).acquire('b');
  expect(await makeLocks(store).tryAcquire(['a', 'b'])).toBeNull();
  expect(store.places).toHaveLength(3);
  expect(store.places.slice(1)).toEqual([undefined, undefined]);
  await held.release();
});

test('a call that asks to enter by a ticket does not wait for others meanwhile', async () => {
  let source: LockSource | undefined;
  const locks = makeLocks(store, { telemetry: [{ watch: (watched): undefined => void (source = watched) }] });
  const held = await makeLocks(store).acquire('k');
  store.join = async (hold: HoldRecord) => {
    await sleep(100);
    return MemoryLockStore.prototype.join.call(store, hold);
  };
  const joins = locks.withLock('k', { ticket: held.makeTicket() }, () => 'joined');
  await sleep(50);
  expect(source?.waiters().size).toBe(0);
  expect(await joins).toBe('joined');
  await held.release();
});

test('a call that waits is never refused for a newcomer, in whichever moment that comes', async () => {
  const others = makeLocks(store);
  for (let hops = 0; hops < 25; hops++) {
    const locks = makeLocks(store, { maxWaiters: { perProcess: 1 } });
    const key = `k${hops}`;
    const held = [await others.acquire(key), await others.acquire('busy', { reentry: 'never' })];
    let wakes!: () => void;
    const woken = new Promise<void>((resolve) => (wakes = resolve));
    let isNext = false;
    store.answer = async (hold, reply) => {
      const answer = await reply;
      if (hold.key === 'busy') {
        await woken;
        for (let hop = 0; hop < hops; hop++) {
          await undefined;
        }
      } else if (hold.key === key) {
        if (isNext) {
          wakes();
        }
        isNext = true;
        return answer.fence === undefined ? { ...answer, recheckMs: 20 } : answer;
      }
      return answer;
    };
    const waits = locks.withLock(key, () => 'entered');
    const newcomer = locks.withLock('busy', () => 'entered').catch((error: unknown) => error);
    await sleep(100);
    store.answer = async (_, reply) => reply;
    await Promise.all(held.map((lock) => lock.release()));
    expect(await waits).toBe('entered');
    expect(['entered', expect.objectContaining({ reason: 'tooManyWaiters' })]).toContainEqual(await newcomer);
    await locks.shutdown();
  }
});

describe('a call whose time is over', () => {
  test('at a shutdown, says so also where the store is away', async () => {
    const locks = makeLocks(store);
    store.answer = away;
    const call = locks.withLock('k', never);
    call.catch(() => undefined);
    await sleep(200);
    await locks.shutdown();
    await expect(call).rejects.toMatchObject({ code: 'LOCK_NOT_ACQUIRED', reason: 'shutdown' });
  });

  test('since the store granted too late is told that it has nothing', async () => {
    let ahead = 0;
    const clock: Clock = { monotonic: () => systemClock.monotonic() + ahead, wall: () => systemClock.wall() + ahead };
    store.answer = async (_, reply) => {
      ahead += 10_000;
      return reply;
    };
    const call = makeLocks(store, { clock }).withLock('k', { ttl: 1_000, wait: 500 }, never);
    await expect(call).rejects.toMatchObject({ code: 'LOCK_STORE', unknown: false });
  });

  test('since another call of its process blocked the thread is told that the lock was busy', async () => {
    Object.defineProperty(store, 'turns', { value: undefined });
    let ahead = 0;
    const clock: Clock = { monotonic: () => systemClock.monotonic() + ahead, wall: () => systemClock.wall() };
    const locks = makeLocks(store, { clock });
    const first = locks.withLock('k', { ttl: 60_000 }, async () => {
      await sleep(100);
      ahead += 20_000;
    });
    const call = locks.withLock('k', { wait: 1_000 }, never);
    await expect(call).rejects.toMatchObject({ code: 'LOCK_NOT_ACQUIRED', reason: 'busy' });
    await first;
  });

  describe('since its process stood still until then is told what the store answered last', () => {
    let ahead: number;
    let slept: LockService;
    beforeEach(() => {
      ahead = 0;
      slept = makeLocks(store, { clock: { monotonic: () => systemClock.monotonic() + ahead, wall: () => systemClock.wall() } });
    });

    /** How a call ends that had one answer, and whose process stood still then. */
    async function refusalOf(): Promise<unknown> {
      const asked = store.askedAt.length;
      const call = slept.withLock('k', { wait: 1_000 }, never).catch((error: unknown) => error);
      await sleep(10);
      ahead += 20_000;
      const refusal = await call;
      expect(store.askedAt).toHaveLength(asked + 1);
      return refusal;
    }

    test('that it failed', async () => {
      store.answer = away;
      expect(await refusalOf()).toMatchObject({ code: 'LOCK_STORE', detail: 'away' });
    });

    test('who had the lock', async () => {
      const held = await makeLocks(store).acquire('k', { by: 'holder', ttl: 60_000 });
      expect(await refusalOf()).toMatchObject({ reason: 'busy', holder: { by: expect.stringMatching(/holder$/) as string } });
      await held.release();
    });
  });
});
