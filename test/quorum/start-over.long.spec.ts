import { setTimeout as sleep } from 'node:timers/promises';
import { makeLocks } from '../support/make-locks';
import { QuorumStores } from '../support/quorum-stores';
import { RedisQuorum } from '../support/redis-quorum';
import { until } from '../support/until';

let stores: QuorumStores;

beforeEach(async () => {
  stores = new QuorumStores(await RedisQuorum.start(3));
});
afterEach(() => stores.stop());

test('a call that takes its keys anew does not enter a lock that its lease served to others meanwhile', async () => {
  const [locks, other] = [makeLocks(await stores.open()), makeLocks(await stores.open())];
  const waitingHere = async (): Promise<number> => (await locks.operations.health()).waitingHere;
  const held = await locks.acquire('b');
  let isIn = false;
  const both = locks.acquire(['a', 'b'], { reentry: 'never' }).finally(() => (isIn = true));
  await until('that it has a, and waits for b', async () => (await waitingHere()) === 1);
  const next = locks.acquire('b', { reentry: 'never' });
  await until('a call behind it', async () => (await waitingHere()) === 2);
  // Its first key is gone when it gets the second: it gives that back, to the call behind it, and takes both anew.
  await other.operations.forceRelease('a', { fence: (await other.operations.inspect('a'))?.fence as number });
  await held.release();
  const served = await next;
  // The store knows the fence of the lease that serves it.
  expect((await other.operations.inspect('b'))?.fence).toBe(served.fence - 1);
  const guest = await other.acquire('b', { ticket: served.makeTicket() });
  await served.release();
  await sleep(50);
  expect([isIn, guest.isHeld()]).toEqual([false, true]);
  await guest.release();
  const lock = await both;
  expect(lock.fenceOf('b')).toBeGreaterThan(served.fence);
  await lock.release();
});
