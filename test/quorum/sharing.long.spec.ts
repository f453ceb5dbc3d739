import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LockService } from '../../lib/nest/lock.service';
import { makeLocks } from '../support/make-locks';
import { QuorumStores } from '../support/quorum-stores';
import { RedisQuorum } from '../support/redis-quorum';

/** How long a section lasts, and for how long callers come one after the other, in milliseconds. */
const SECTION_MS = 15;
const FOR_MS = 4_000;

let stores: QuorumStores;
/** The grants of all processes so far. */
let grants: number;
beforeEach(async () => {
  grants = 0;
  stores = new QuorumStores(await RedisQuorum.start());
});
afterEach(() => stores.stop());

const open = async (): Promise<LockService> => makeLocks(await stores.open(stores.quorum.urls));

/**
 * Locks again and again; resolves to how many others had the lock while the unluckiest call waited. A call that is
 * refused fails the test.
 */
async function mostPassedOver(locks: LockService): Promise<number> {
  const endsAt = performance.now() + FOR_MS;
  let most = 0;
  while (performance.now() < endsAt) {
    const before = grants;
    await locks.withLock('k', { wait: 30_000 }, async () => {
      most = Math.max(most, grants - before);
      grants++;
      await sleep(SECTION_MS);
    });
  }
  return most;
}

// Counted in grants and not in time, as of a machine that stalls nothing else is known.
test('eight processes that want a lock all the time have it in turn, and none is shut out', async () => {
  const processes = await Promise.all(Array.from({ length: 8 }, open));
  const passedOver = await Promise.all(processes.map(mostPassedOver));
  // Each may have it for a slice of 50 ms, and a section more; twice that, for turns that were missed.
  expect(Math.max(...passedOver)).toBeLessThan(8 * 2 * 5);
});

test('forty callers of one process are not shut out by a single one of another that comes back at once', async () => {
  const [one, many] = [await open(), await open()];
  const passedOver = await Promise.all([mostPassedOver(one), ...Array.from({ length: 40 }, () => mostPassedOver(many))]);
  // The processes take turns, so a caller waits for those before it in its own, and for as many of the other.
  expect(passedOver[0]).toBeLessThan(20);
  expect(Math.max(...passedOver.slice(1))).toBeLessThan(40 * 3);
});
