import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { LockNotAcquiredError } from '../../lib/core/words/errors';
import type { LeftOut, ListedLock } from '../../lib/operate/peers/lock-list';
import type { LockProcess } from '../../lib/operate/peers/survey';
import type { LockService } from '../../lib/nest/lock.service';
import type { ListOptions } from '../../lib/nest/lock-operations.options';
import { makeLocks } from '../support/make-locks';
import { connectTo, wasSlow } from '../support/sends-again';
import { sideBySide } from '../support/side-by-side';
import type { StoreKind, StorePlace } from '../support/stores';
import { until } from '../support/until';

/** The knowledge of processes about each other: lists of locks, and deadlocks. */
export function peersSuite(place: () => StorePlace, { hasServers }: StoreKind): void {
  const beside = sideBySide({ prepare: async () => ({ prefix: `${randomUUID()} ` }), atOnce: 12 });

  const newService = async (): Promise<LockService> =>
    makeLocks(await connectTo(place()), { wait: 60_000, ttl: 60_000, deadlocksAfterMs: 1_000 });

  const readList = async (locks: LockService, options: ListOptions): Promise<{ found: ListedLock[]; leftOut: LeftOut }> => {
    for (;;) {
      const list = locks.operations.list(options);
      const found: ListedLock[] = [];
      try {
        for await (const lock of list) {
          found.push(lock);
        }
        return { found, leftOut: list.leftOut };
      } catch (error) {
        // On a busy machine, a list is asked for once more.
        if (!wasSlow(error)) {
          throw error;
        }
      }
    }
  };

  const listed = async (locks: LockService, options: ListOptions): Promise<ListedLock[]> => (await readList(locks, options)).found;

  test('processes shows each process, with what it holds', async () => {
    const [mine, theirs] = [await newService(), await newService()];
    const lock = await theirs.acquire(`held ${randomUUID()}`);
    let own: LockProcess | undefined;
    await until('the other process is listed, and the store answers', async () => {
      const processes = await mine.operations.processes();
      [own] = processes;
      return processes.filter(({ held }) => held === 1).length === 1 && own?.health?.status === 'up';
    });
    expect(own).toMatchObject({ pid: process.pid, held: 0, waiting: 0, health: { status: 'up', heldHere: 0 } });
    await lock.release();
  });

  if (hasServers) {
    test('a process that has shut down is missed by nobody, and one that has closed without a word is', async () => {
      const mine = await newService();
      // A message is lost where a server stands still: then with others.
      await until('one of two is missed', async () => {
        const [store, other] = [await connectTo(place()), await connectTo(place())];
        const [theirs, silent] = [makeLocks(store), makeLocks(other)];
        const [own, its] = await Promise.all([theirs, silent].map(async (locks) => (await locks.operations.processes())[0]?.id));
        await mine.operations.survey({});
        await Promise.all([theirs.shutdown(), other.close()]);
        const missed = (await mine.operations.survey({})).silent;
        await silent.shutdown();
        return missed.includes(its as string) && !missed.includes(own as string);
      });
    });
  }

  beside('a list has the locks of all processes, the oldest first, with who waits', async ({ prefix }) => {
    const [mine, theirs] = [await newService(), await newService()];
    const first = await theirs.acquire(`${prefix}first`, { by: 'Their.method' });
    await sleep(20);
    const second = await mine.acquire(`${prefix}second`);
    const waits = mine.withLock(`${prefix}first`, () => undefined);
    let locks: ListedLock[] = [];
    await until('both locks are listed', async () => {
      locks = await listed(mine, { prefix });
      return locks.length === 2 && locks[0]?.waiters.length === 1 && locks[0].waitingHere === 1 && locks.every(({ answers }) => answers);
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

  beside('a search finds what nobody answers for, and a list without it says that it was not made', async ({ prefix }) => {
    const locks = await newService();
    const store = await connectTo(place());
    const hold = { key: `${prefix}orphan`, owner: 'o'.repeat(22), id: randomUUID(), fence: 0, fences: 1 };
    await store.acquire({ ...hold, ttlMs: 60_000, limitMs: 1_000, lingering: false, unanswered: false, by: 'a process that has gone' });
    expect(await listed(locks, { prefix, scan: false })).toEqual([]);
    const [orphan, ...others] = await listed(locks, { prefix });
    expect(others).toEqual([]);
    expect(orphan).toMatchObject({ key: hold.key, by: 'a process that has gone', holds: 1 });
    expect(locks.operations.list({ prefix }).leftOut.unsearched).toBe(true);
    const { found, leftOut } = await readList(locks, { prefix, limit: 1 });
    expect(found.map(({ key }) => key)).toEqual([hold.key]);
    expect(leftOut).toEqual({ rows: 0, limited: false, unsearched: false });
  });

  for (const count of [2, 3, 5]) {
    beside(`of ${count} calls that wait for each other in as many processes, one gives way`, async ({ prefix }) => {
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
      expect(new Set(error.cycle?.map(({ site }) => site))).toEqual(new Set(calls.map((_, at) => `Inner.call${at}`)));
      expect(error.detail).toMatch(new RegExp(`wait for each other.* holds "${prefix}\\d".* and waits for "${prefix}\\d"`));
      // Long before the end of their wait.
      expect(tookMs).toBeLessThan(15_000);
    });
  }
}
