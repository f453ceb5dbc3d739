import { setTimeout as sleep } from 'node:timers/promises';
import { LockNotAcquiredError } from '../../../lib/core/words/errors';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import { makeLocks } from '../../support/make-locks';

/** Counts the commands that it is asked for. */
class CountingStore extends MemoryLockStore {
  acquires = 0;
  releases = 0;

  override acquire(...args: Parameters<MemoryLockStore['acquire']>): ReturnType<MemoryLockStore['acquire']> {
    this.acquires++;
    return super.acquire(...args);
  }

  override release(...args: Parameters<MemoryLockStore['release']>): ReturnType<MemoryLockStore['release']> {
    this.releases++;
    return super.release(...args);
  }
}

describe('readers of one process', () => {
  test('share one hold, which is released when the last of them has left', async () => {
    const store = new CountingStore();
    const locks = makeLocks(store);
    const first = await locks.acquire('k', { mode: 'read' });
    const others = await Promise.all(Array.from({ length: 20 }, () => locks.acquire('k', { mode: 'read' })));
    expect(others.map(({ fence }) => fence)).toEqual(others.map(() => first.fence));
    // On a machine that stalls for 25 ms, one of them asks the store itself.
    expect(store.acquires).toBeLessThan(21);
    await first.release();
    expect((await locks.operations.inspect('k'))?.holds).toBeGreaterThan(0);
    await Promise.all(others.map((lock) => lock.release()));
    expect(store.releases).toBe(store.acquires);
    expect(await locks.operations.inspect('k')).toBeNull();
    await locks.shutdown();
  });

  test('keep their hold where one that was let in beside them had given up', async () => {
    const locks = makeLocks(new MemoryLockStore());
    const controller = new AbortController();
    const first = locks.withLock('k', { mode: 'read' }, async (lock) => {
      // The second one is admitted to the line in this moment, and has not gone on.
      controller.abort();
      await sleep(20);
      return (await locks.operations.inspect('k'))?.fence === lock.fence && lock.isHeld();
    });
    const second = locks.withLock('k', { mode: 'read', signal: controller.signal }, () => 'ran');
    await expect(second).rejects.toThrow(LockNotAcquiredError);
    expect(await first).toBe(true);
    expect(await locks.operations.inspect('k')).toBeNull();
    await locks.shutdown();
  });
});

test('a permit serves the calls here that wait, with few commands', async () => {
  const store = new CountingStore();
  const locks = makeLocks(store, { wait: 60_000 });
  const blocker = await locks.acquirePermit('k', 2, { renew: false });
  let runs = 0;
  await Promise.all(
    Array.from({ length: 64 }, () =>
      locks.withPermit('k', 2, async () => {
        runs++;
        await sleep(1);
      }),
    ),
  );
  expect(runs).toBe(64);
  await blocker.release();
  expect(store.releases).toBeLessThan(16);
  expect(await locks.operations.inspect('k')).toBeNull();
  await locks.shutdown();
});
