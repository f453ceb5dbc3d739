import type { LockService } from '../../lib/nest/lock.service';
import { quickest } from './quickest';
import { until } from './until';

const KEY = 'handed';

/** Far less than the rest of the pause before the next poll. */
const NOTIFIED_MS = 100;

/**
 * How long a waiter at one store waits after the release by a holder at another, in milliseconds: the shortest of
 * several times, since its subscription may be new at first, and the machine may stall. Without a message it takes the
 * rest of the pause before the next poll, each time.
 */
export function handOver(holder: LockService, waiter: LockService): Promise<number> {
  return quickest(NOTIFIED_MS, () => handOverOnce(holder, waiter));
}

async function handOverOnce(holder: LockService, waiter: LockService): Promise<number> {
  const held = await holder.acquire(KEY, { wait: 10_000 });
  const served = waiter.withLock(KEY, { wait: 10_000 }, () => performance.now());
  await untilWaiting(holder, KEY);
  const releasedAt = performance.now();
  await held.release();
  return (await served) - releasedAt;
}

/** Waits until so many processes stand in the queue of a lock that is held. */
export async function untilWaiting(locks: LockService, key: string, count = 1): Promise<void> {
  await until(`${count} in the queue`, async () => (await locks.operations.inspect(key))?.waiters.length === count);
}
