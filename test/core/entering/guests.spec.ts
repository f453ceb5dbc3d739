import { type Clock, systemClock } from '../../../lib/core/seam/time';
import type { LockNotAcquiredError } from '../../../lib/core/words/errors';
import { enterTickets } from '../../../lib/nest/current-tickets';
import type { LockService } from '../../../lib/nest/lock.service';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import { makeLocks } from '../../support/make-locks';
import { until } from '../../support/until';
import { playTime } from '../../support/virtual-time';

playTime();

test('a call whose ticket was refused before asks the store anew, without a busy wait', async () => {
  const store = new MemoryLockStore();
  let reads = 0;
  const clock: Clock = {
    wall: () => systemClock.wall(),
    monotonic: () => {
      expect(++reads).toBeLessThan(1_000);
      return systemClock.monotonic();
    },
  };
  const holder = await makeLocks(store).acquire('k');
  const ticket = holder.makeTicket();
  await holder.release();
  const locks = makeLocks(store, { clock });
  await enterTickets(ticket, async () => {
    for (let call = 0; call < 3; call++) {
      await expect(locks.withLock('k', () => undefined)).rejects.toMatchObject({ code: 'LOCK_LOST' });
    }
  });
});

test('a call inside waits for no lease in doubt, and does not join beside its code', async () => {
  const store = new MemoryLockStore();
  let jump = 0;
  const clock: Clock = { wall: () => systemClock.wall() + jump, monotonic: () => systemClock.monotonic() };
  const holder = await makeLocks(store).acquire('k', { ttl: '60s' });
  const locks = makeLocks(store, { clock });
  await enterTickets(holder.makeTicket(), async () => {
    let end!: () => void;
    const first = locks.withLock('k', { ttl: '60s' }, () => new Promise<void>((resolve) => (end = resolve)));
    await until('that it is inside', () => end !== undefined);
    jump = 61_000;
    let ran = false;
    await expect(locks.withLock('k', () => (ran = true))).rejects.toMatchObject({ code: 'LOCK_LOST' });
    expect(ran).toBe(false);
    end();
    await first;
  });
  await holder.release();
});

test.each([
  ['shutdown', (locks: LockService) => locks.shutdown()],
  ['aborted', (_locks: LockService, abort: AbortController) => abort.abort()],
])('a call that waits for another one to join sends no join of its own once it gave up: %s', async (reason, giveUp) => {
  let joins = 0;
  let mayAnswer = (): void => undefined;
  const answered = new Promise<void>((resolve) => (mayAnswer = resolve));
  class Store extends MemoryLockStore {
    override async join(): Promise<boolean> {
      joins++;
      await answered;
      return false;
    }
  }
  const store = new Store();
  const holder = await makeLocks(store).acquire('k', { ttl: '60s' });
  const locks = makeLocks(store);
  const abort = new AbortController();
  await enterTickets(holder.makeTicket(), async () => {
    const first = locks.withLock('k', () => 'first').catch(() => 'refused');
    const second = locks.withLock('k', { signal: abort.signal }, () => 'second').catch((error: LockNotAcquiredError) => error.reason);
    await until('that the first one joins', () => joins === 1);
    const given = giveUp(locks, abort);
    mayAnswer();
    expect(await Promise.all([first, second])).toEqual(['refused', reason]);
    await given;
  });
  expect(joins).toBe(1);
  await holder.release();
});
