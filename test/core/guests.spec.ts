import { type Clock, systemClock } from '../../lib/core/seam/time';
import { enterTickets } from '../../lib/nest/current-tickets';
import { MemoryLockStore } from '../../lib/stores/memory/memory-lock-store';
import { makeLocks } from '../support/make-locks';
import { playTime } from '../support/virtual-time';

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
