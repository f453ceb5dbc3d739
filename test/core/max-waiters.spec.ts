import type { AcquireReply, HoldRecord, Place } from '../../lib/core/seam/lock-store';
import type { LockSource } from '../../lib/core/words/lock-telemetry';
import { MemoryLockStore } from '../../lib/stores/memory/memory-lock-store';
import { makeLocks } from '../support/make-locks';

/** Tells a contender to ask again soon, and is slow to answer when it does. */
class SlowStore extends MemoryLockStore {
  readonly asked: (() => void)[] = [];
  readonly #ids = new Set<string>();

  override async acquire(hold: HoldRecord, place?: Place): Promise<AcquireReply> {
    if (this.#ids.has(hold.id)) {
      await new Promise<void>((resolve) => this.asked.push(resolve));
    }
    this.#ids.add(hold.id);
    const reply = await super.acquire(hold, place);
    return reply.fence === undefined ? { ...reply, recheckMs: 1 } : reply;
  }
}

test('a call that waits counts also while it asks the store again', async () => {
  const store = new SlowStore();
  let source: LockSource | undefined;
  const watch = (watched: LockSource): undefined => void (source = watched);
  const locks = makeLocks(store, { maxWaiters: { perProcess: 1 }, telemetry: [{ watch }] });
  const others = makeLocks(store);
  const held = [await others.acquire('first'), await others.acquire('second')];
  const waiting = locks.withLock('first', () => 'served');
  while (store.asked.length === 0) {
    await new Promise(setImmediate);
  }
  expect([...(source?.waiters() ?? [])]).toEqual([['LockService.withLock', 1]]);
  await expect(locks.withLock('first', () => undefined)).rejects.toMatchObject({ reason: 'tooManyWaiters' });
  await expect(locks.withLock('second', () => undefined)).rejects.toMatchObject({ reason: 'tooManyWaiters' });
  await Promise.all(held.map((lock) => lock.release()));
  store.asked.splice(0).forEach((answer) => answer());
  expect(await waiting).toBe('served');
  expect(source?.waiters().size).toBe(0);
  // Nothing is counted that has ended.
  const holder = await others.acquire('first');
  const again = locks.withLock('first', () => 'again');
  await holder.release();
  while (store.asked.length === 0) {
    await new Promise(setImmediate);
  }
  store.asked.splice(0).forEach((answer) => answer());
  expect(await again).toBe('again');
});
