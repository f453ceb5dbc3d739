import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { LockNotAcquiredError } from '../../lib/core/errors';
import type { ListedLock } from '../../lib/core/peers/lock-list';
import type { LockService } from '../../lib/nest/lock.service';
import { makeLocks } from '../support/make-locks';
import type { StorePlace } from '../support/stores';
import { until } from '../support/until';

/** What processes know of each other: lists of locks, and deadlocks. */
export function peersSuite(place: () => StorePlace): void {
  let prefix: string;

  beforeEach(() => {
    prefix = `${randomUUID()} `;
  });

  const newService = async (): Promise<LockService> =>
    makeLocks(await place().connect(), { wait: 60_000, ttl: 60_000, deadlocksAfterMs: 1_000 });

  const listed = async (locks: LockService, options = {}): Promise<ListedLock[]> => {
    const found: ListedLock[] = [];
    for await (const lock of locks.list({ prefix, ...options })) {
      found.push(lock);
    }
    return found;
  };

  test('a list has the locks of all processes, the oldest first, with who waits', async () => {
    const [mine, theirs] = [await newService(), await newService()];
    const first = await theirs.acquire(`${prefix}first`, { by: 'Their.method' });
    await sleep(20);
    const second = await mine.acquire(`${prefix}second`);
    const waits = mine.withLock(`${prefix}first`, () => undefined);
    let locks: ListedLock[] = [];
    await until('both locks are listed', async () => {
      locks = await listed(mine);
      return locks.length === 2 && locks[0]?.waiters.length === 1;
    });
    expect(locks.map(({ key, fence, holds, answers, waitingHere }) => ({ key, fence, holds, answers, waitingHere }))).toEqual([
      { key: `${prefix}first`, fence: first.fence, holds: 1, answers: true, waitingHere: 1 },
      { key: `${prefix}second`, fence: second.fence, holds: 1, answers: true, waitingHere: 0 },
    ]);
    expect(locks[0]?.by).toMatch(/ \(pid \d+\) Their\.method$/);
    await first.release();
    await second.release();
    await waits;
  });

  test('a search finds what nobody answers for, and a list without it says that it was not made', async () => {
    const locks = await newService();
    const store = await place().connect();
    const hold = { key: `${prefix}orphan`, owner: 'o'.repeat(22), id: randomUUID(), fence: 0, fences: 1 };
    await store.acquire({ ...hold, ttlMs: 60_000, limitMs: 1_000, lingering: false, by: 'a process that has gone' });
    expect(await listed(locks, { scan: false })).toEqual([]);
    const [orphan, ...others] = await listed(locks);
    expect(others).toEqual([]);
    expect(orphan).toMatchObject({ key: hold.key, by: 'a process that has gone', holds: 1 });
    const list = locks.list({ prefix, limit: 1 });
    expect(list.leftOut.unsearched).toBe(true);
    for await (const lock of list) {
      expect(lock.key).toBe(hold.key);
    }
    expect(list.leftOut).toEqual({ rows: 0, limited: false, unsearched: false });
  });

  test('processes shows each process, with what it holds', async () => {
    const [mine, theirs] = [await newService(), await newService()];
    const lock = await theirs.acquire(`${prefix}held`);
    await until('the other process is listed', async () => (await mine.processes()).filter(({ held }) => held === 1).length === 1);
    const [own] = await mine.processes();
    expect(own).toMatchObject({ pid: process.pid, held: 0, waiting: 0, health: { status: 'up', heldHere: 0 } });
    await lock.release();
  });

  test.each([2, 3, 5])('of %i calls that wait for each other in as many processes, one gives way', async (count) => {
    const services = await Promise.all(Array.from({ length: count }, newService));
    const keys = services.map((_, at) => `${prefix}${at}`);
    let inside = 0;
    let closedAt = 0;
    const calls = services.map((locks, at) =>
      locks.withLock(keys[at] as string, { by: `Outer.call${at}` }, async () => {
        inside++;
        await until('all calls are inside', () => inside === count);
        closedAt = performance.now();
        return locks.withLock(keys[(at + 1) % count] as string, { by: `Inner.call${at}` }, () => performance.now());
      }),
    );
    const ends = await Promise.allSettled(calls);
    const tookMs = performance.now() - closedAt;
    const failed = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason as LockNotAcquiredError] : []));
    expect(failed).toHaveLength(1);
    const [error] = failed as [LockNotAcquiredError];
    expect(error).toBeInstanceOf(LockNotAcquiredError);
    expect(error.reason).toBe('cycle');
    expect(new Set(error.cycle?.map(({ place: site }) => site))).toEqual(new Set(calls.map((_, at) => `Inner.call${at}`)));
    expect(error.detail).toMatch(new RegExp(`wait for each other.* holds "${prefix}\\d".* and waits for "${prefix}\\d"`));
    expect(tookMs).toBeLessThan(3_000);
  });
}
