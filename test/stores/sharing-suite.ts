import { setTimeout as sleep } from 'node:timers/promises';
import { LockConfigurationError, LockNotAcquiredError } from '../../lib/core/words/errors';
import { assertLocked } from '../../lib/nest/current-lock';
import { outsideLocks } from '../../lib/core/calls/call-tree';
import type { LockService } from '../../lib/nest/lock.service';
import type { LockStore } from '../../lib/core/seam/lock-store';
import type { LockTrouble } from '../../lib/core/words/lock-event';
import { makeLocks } from '../support/make-locks';
import { saying } from '../support/saying';
import { until } from '../support/until';
import type { StoreKind, StorePlace } from '../support/stores';

/** Notes who is inside at once, and what must never be. */
class Room {
  readers = 0;
  writers = 0;
  mostReaders = 0;
  broken = 0;

  read = (ms: number) => this.#inside('readers', ms);
  write = (ms: number) => this.#inside('writers', ms);

  async #inside(who: 'readers' | 'writers', ms: number): Promise<void> {
    this[who]++;
    this.mostReaders = Math.max(this.mostReaders, this.readers);
    if (this.writers > 1 || (this.writers === 1 && this.readers > 0)) {
      this.broken++;
    }
    await sleep(ms);
    this[who]--;
  }
}

const services = (stores: readonly LockStore[], settings = {}): LockService[] =>
  stores.map((store) => makeLocks(store, { wait: 60_000, ...settings }));

/** Readers beside each other, and semaphores, as callers see them. */
export function sharingSuite(place: () => StorePlace, { offers }: StoreKind): void {
  /** Where a store has no queue, nobody is before anybody. */
  const testOfOrder = offers.includes('turns') ? test : test.skip;
  let stores: LockStore[];
  let locks: LockService[];
  let one: LockService;
  let other: LockService;
  let keys = 0;
  const newKey = (): string => `shared:${process.pid}:${keys++}`;

  beforeAll(async () => {
    stores = await Promise.all([place().connect(), place().connect(), place().connect()]);
    locks = services(stores);
    [one, other] = locks as [LockService, LockService];
  });
  afterAll(() => Promise.all(locks.map((service) => service.shutdown())));

  describe("mode: 'read'", () => {
    test('runs readers of two processes beside each other, at one fence', async () => {
      const key = newKey();
      await one.withLock(key, { mode: 'read' }, (first) =>
        other.withLock(key, { mode: 'read' }, (second) => expect(second.fence).toBe(first.fence)),
      );
    });

    test('runs a writer alone, after all readers, with a fence above theirs', async () => {
      const key = newKey();
      const room = new Room();
      const fences: number[] = [];
      const readers = [0, 1, 2].map((at) =>
        (locks[at] as LockService).withLock(key, { mode: 'read' }, async (lock) => {
          fences.push(lock.fence);
          await room.read(300);
        }),
      );
      await until('all readers are in', () => fences.length === 3);
      await one.withLock(key, async (lock) => {
        expect(lock.fence).toBeGreaterThan(Math.max(...fences));
        await room.write(5);
      });
      await Promise.all(readers);
      expect(room).toMatchObject({ broken: 0, mostReaders: 3 });
    });

    testOfOrder('lets no reader overtake a writer that waits', async () => {
      const key = newKey();
      const order: string[] = [];
      const reader = await one.acquire(key, { mode: 'read' });
      const writes = other.withLock(key, () => void order.push('writer'));
      await until('the writer waits', async () => (await one.operations.inspect(key))?.waiters.length === 1);
      const reads = (locks[2] as LockService).withLock(key, { mode: 'read' }, () => void order.push('reader'));
      await sleep(100);
      expect(order).toEqual([]);
      await reader.release();
      await Promise.all([writes, reads]);
      expect(order).toEqual(['writer', 'reader']);
    });

    testOfOrder('lets no reader in beside one of its process that came long before, while a writer waits', async () => {
      const key = newKey();
      const order: string[] = [];
      const first = await one.acquire(key, { mode: 'read' });
      const writes = other.withLock(key, () => void order.push('writer'));
      await until('the writer waits', async () => (await one.operations.inspect(key))?.waiters.length === 1);
      await sleep(100);
      const second = one.withLock(key, { mode: 'read' }, () => void order.push('reader'));
      await sleep(20);
      await first.release();
      await Promise.all([writes, second]);
      expect(order).toEqual(['writer', 'reader']);
    });

    testOfOrder('lets a writer in among readers that come all the time', async () => {
      const key = newKey();
      const room = new Room();
      const over = new AbortController();
      // One of each process is always in, so that none of them ever stands empty.
      const reading = locks.flatMap((service) =>
        [3, 5, 7, 11].map(async (ms) => {
          while (!over.signal.aborted) {
            await service.withLock(key, { mode: 'read' }, () => room.read(ms));
          }
        }),
      );
      for (let writes = 0; writes < 5; writes++) {
        await one.withLock(key, () => room.write(2));
      }
      over.abort();
      await Promise.all(reading);
      expect(room.broken).toBe(0);
    });

    test('lets calls of one process in that come at once and do not wait', async () => {
      const key = newKey();
      const held = await Promise.all([1, 2, 3, 4].map(() => one.tryAcquire(key, { mode: 'read' })));
      expect(held.map((lock) => lock?.isHeld())).toEqual([true, true, true, true]);
      await Promise.all(held.map((lock) => lock?.release()));
      expect(await one.operations.inspect(key)).toBeNull();
    });

    test('enters a lock of write mode from inside, at its fence', async () => {
      const key = newKey();
      await one.withLock(key, (outer) => one.withLock(key, { mode: 'read' }, (inner) => expect(inner.fence).toBe(outer.fence)));
    });

    test('runs calls that a reader makes in parallel beside each other', async () => {
      const key = newKey();
      const room = new Room();
      await one.withLock(key, { mode: 'read' }, () =>
        Promise.all([1, 2, 3].map(() => one.withLock(key, { mode: 'read' }, () => room.read(200)))),
      );
      expect(room.mostReaders).toBe(3);
    });

    test("refuses a writer inside a reader at once, with the reason 'upgrade', and answers nothing for it", async () => {
      const key = newKey();
      const answered = one.withLock(key, { mode: 'read', by: 'Prices.read' }, () =>
        one.withLock(key, { by: 'Prices.write', onBusy: () => 'answered' }, () => 'ran'),
      );
      const error = (await answered.catch((thrown: unknown) => thrown)) as LockNotAcquiredError;
      expect(error).toBeInstanceOf(LockNotAcquiredError);
      expect(error.reason).toBe('upgrade');
      // No repetition mends it.
      expect(error.retryAfterMs).toBe(0);
      expect(error.detail).toContain('Prices.write writes, and was called inside Prices.read, which only reads');
    });

    test('is enough for assertLocked(key), and not for assertLocked(key, write)', async () => {
      const key = newKey();
      await one.withLock(key, { mode: 'read' }, () => {
        expect(assertLocked(key).keys).toEqual([key]);
        expect(() => assertLocked(key, 'write')).toThrow(LockConfigurationError);
      });
      await one.withLock(key, () => expect(assertLocked(key, 'write').keys).toEqual([key]));
    });

    test('reads several keys at once, and lets the calls of the process in without a command each', async () => {
      const several = [newKey(), newKey()];
      const room = new Room();
      await Promise.all(Array.from({ length: 20 }, () => one.withLock(several, { mode: 'read' }, () => room.read(100))));
      expect(room.mostReaders).toBeGreaterThan(1);
      await one.withLock(several, () => room.write(1));
      expect(room.broken).toBe(0);
    });

    testOfOrder('lets another process in by the ticket of a reader, before a writer that waits, until the reader has left', async () => {
      const key = newKey();
      const reader = await one.acquire(key, { mode: 'read' });
      const ticket = reader.makeTicket();
      const writes = one.withLock(key, () => 'wrote');
      await until('the writer waits', async () => (await other.operations.inspect(key))?.waiters.length === 1);
      const guest = await other.acquire(key, { mode: 'read', ticket });
      expect([guest.fence, (await other.operations.inspect(key))?.holds]).toEqual([reader.fence, 2]);
      await expect(other.withLock(key, { ticket }, () => 'ran')).rejects.toMatchObject(saying('the ticket of a call that only reads'));
      await reader.release();
      expect(guest.isHeld()).toBe(true);
      await guest.release();
      expect(await writes).toBe('wrote');
      await expect(other.withLock(key, { mode: 'read', ticket }, () => 'ran')).rejects.toMatchObject({ code: 'LOCK_LOST' });
    });

    test('refuses the ticket of a reader that has left, although another of the process is in', async () => {
      const key = newKey();
      const left = await one.acquire(key, { mode: 'read' });
      const ticket = left.makeTicket();
      await left.release();
      await using later = await other.acquire(key, { mode: 'read' });
      await expect(other.withLock(key, { mode: 'read', ticket }, () => 'ran')).rejects.toMatchObject({ code: 'LOCK_LOST' });
      expect(later.isHeld()).toBe(true);
    });

    test('tells of a forced release, each of the readers', async () => {
      const key = newKey();
      const held = await Promise.all([one.acquire(key, { mode: 'read' }), other.acquire(key, { mode: 'read' })]);
      const stored = await one.operations.inspect(key);
      expect(stored).toMatchObject({ holds: 2, shares: 'read', fence: held[0].fence });
      expect(await one.operations.forceRelease(key, { fence: held[0].fence })).toBe(true);
      await until('each of them knows', () => held.every((lock) => lock.signal.aborted));
      await Promise.all(held.map((lock) => lock.release()));
    });
  });

  describe('withPermit()', () => {
    test('runs as many calls at once as there are permits, over all processes', async () => {
      const key = newKey();
      const room = new Room();
      await Promise.all(Array.from({ length: 24 }, (_, at) => (locks[at % 3] as LockService).withPermit(key, 4, () => room.read(20))));
      expect(room.mostReaders).toBe(4);
      expect(await one.operations.inspect(key)).toBeNull();
    });

    test('counts by the smallest count of those present', async () => {
      const key = newKey();
      const wide = await one.acquirePermit(key, 3);
      const narrow = await one.tryAcquirePermit(key, 1);
      expect(narrow).toBeNull();
      const second = await other.acquirePermit(key, 2);
      expect(await one.tryAcquirePermit(key, 3)).toBeNull();
      await second.release();
      expect(await one.tryAcquirePermit(key, 2)).not.toBeNull();
      await wide.release();
    });

    test('gives each call of one process a permit that comes at once and does not wait, and refuses the one too many', async () => {
      const key = newKey();
      const held = await Promise.all([1, 2, 3, 4].map(() => one.tryAcquirePermit(key, 3)));
      expect(held.filter((permit) => permit?.isHeld())).toHaveLength(3);
      await Promise.all(held.map((permit) => permit?.release()));
      expect(await one.operations.inspect(key)).toBeNull();
    });

    test('tells once of a call that has another count, and names both', async () => {
      const key = newKey();
      const troubles: LockTrouble[] = [];
      const third = makeLocks(stores[2] as LockStore, { wait: 0, onTrouble: (trouble) => troubles.push(trouble) });
      await using permit = await one.acquirePermit(key, 1, { by: 'Erp.old' });
      expect(permit.isHeld()).toBe(true);
      await third.tryAcquirePermit(key, 1, { by: 'Erp.alike' });
      expect(troubles).toEqual([]);
      await third.tryAcquirePermit(key, 2, { by: 'Erp.new' });
      await third.tryAcquirePermit(key, 2, { by: 'Erp.new' });
      const about = { type: 'countsDiffer', key, site: 'Erp.new', permits: 2, holderPermits: 1 };
      expect(troubles).toEqual([expect.objectContaining(about)]);
      expect((troubles as { holder?: { by: string } }[])[0]?.holder?.by).toContain('Erp.old');
      const refusal = third.withPermit(key, 2, { by: 'Erp.new', wait: 0 }, () => 'ran');
      await expect(refusal).rejects.toMatchObject({ detail: expect.stringContaining('a holder counts only 1: all are taken') as string });
      await permit.release();
      await using newer = await one.acquirePermit(key, 2, { by: 'Erp.new' });
      expect(newer.isHeld()).toBe(true);
      await third.tryAcquirePermit(key, 1, { by: 'Erp.new' });
      expect(troubles).toHaveLength(1);
    });

    test('takes no second permit for a call from inside', async () => {
      const key = newKey();
      expect(await one.withPermit(key, 1, () => one.withPermit(key, 1, () => 'ran'))).toBe('ran');
      const never = one.withPermit(key, 1, () => one.withPermit(key, 1, { reentry: 'never', wait: 0 }, () => 'ran'));
      await expect(never).rejects.toThrow(LockNotAcquiredError);
    });

    test('refuses with status 429 where all are taken, and names the count', async () => {
      const key = newKey();
      await using permit = await one.acquirePermit(key, 1, { by: 'Erp.sync' });
      expect(permit.key).toBe(key);
      const error = (await other.withPermit(key, 1, { wait: 0 }, () => 'ran').catch((thrown: unknown) => thrown)) as LockNotAcquiredError;
      expect(error).toMatchObject({ status: 429, permits: 1, reason: 'busy' });
      expect(error.detail).toContain(`Semaphore "${key}" gave none of its 1 permits at once: all are taken, the first by`);
    });

    test('is no lock: nothing of it is a current lock, and the key is refused as a lock', async () => {
      const key = newKey();
      await one.withPermit(key, 2, async (permit) => {
        expect(permit.isHeld()).toBe(true);
        expect(() => assertLocked(key)).toThrow(LockConfigurationError);
        await expect(one.withLock(key, () => 'ran')).rejects.toMatchObject(saying('is a semaphore now, and was asked for as a lock'));
      });
      // Also in the process that has the lock, and from inside.
      await one.withLock(key, async () => {
        await expect(other.withPermit(key, 2, () => 'ran')).rejects.toMatchObject(saying('is a lock now'));
        await expect(one.withPermit(key, 2, () => 'ran')).rejects.toMatchObject(saying('is a lock now'));
        await expect(one.withPermit(key, 2, { wait: 0 }, () => 'ran')).rejects.toMatchObject(saying('is a lock now'));
        await expect(outsideLocks(() => one.acquirePermit(key, 2))).rejects.toMatchObject(saying('is a lock now'));
      });
    });

    test('passes a permit on to the calls of its process that wait', async () => {
      const key = newKey();
      let runs = 0;
      await Promise.all(
        Array.from({ length: 40 }, () =>
          one.withPermit(key, 2, async () => {
            runs++;
            await sleep(1);
          }),
        ),
      );
      expect(runs).toBe(40);
      expect(await one.operations.inspect(key)).toBeNull();
    });

    test('lets another process have a permit although calls of this one wait all the time', async () => {
      const key = newKey();
      const order: string[] = [];
      const run = (service: LockService, name: string): Promise<void> =>
        service.withPermit(key, 1, async () => {
          order.push(name);
          await sleep(2);
        });
      const here = Array.from({ length: 80 }, () => run(one, 'here'));
      await until('one of them is in', () => order.length > 0);
      await run(other, 'there');
      await Promise.all(here);
      expect(order.length).toBe(81);
      expect(order.at(-1)).toBe('here');
    });

    test('gives back what a holder left whose lease is over', async () => {
      const key = newKey();
      const forgotten = await one.acquirePermit(key, 1, { ttl: 1_000, renew: false });
      await other.withPermit(key, 1, () => undefined);
      expect(forgotten.isHeld()).toBe(false);
      await forgotten.release();
    });
  });
}
