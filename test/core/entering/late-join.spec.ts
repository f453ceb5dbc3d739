import type { HoldRecord } from '../../../lib/core/seam/lock-store';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store';
import { makeLocks } from '../../support/make-locks';
import { playTime } from '../../support/virtual-time';

playTime();

test('a ticket whose join came too late by the wall clock enters with the next attempt', async () => {
  let ahead = 0;
  const joins: HoldRecord[] = [];
  class Store extends MemoryLockStore {
    override async join(hold: HoldRecord): Promise<boolean> {
      joins.push(hold);
      const joined = await super.join(hold);
      // The wall clock jumps while the first reply is on its way.
      ahead = joins.length === 1 ? 3_600_000 : ahead;
      return joined;
    }
  }
  const store = new Store();
  const holder = await makeLocks(store).acquire('k');
  const clock = { monotonic: () => performance.now(), wall: () => Date.now() + ahead };
  const others = makeLocks(store, { clock });
  const fence = await others.withLock('k', { ticket: holder.makeTicket() }, (lock) => lock.fence);
  expect(fence).toBe(holder.fence);
  expect(joins).toHaveLength(2);
  expect(joins[1]?.id).not.toBe(joins[0]?.id);
  expect(holder.isHeld()).toBe(true);
  await holder.release();
});
