import type { Lease } from './lease.js';
import type { LeaseKeeper } from './lease-events.js';
import type { Leases } from './leases.js';

/** A transaction has ended: the leases that it kept are released, unless calls are inside. Never rejects. */
export async function settle(leases: Leases, transaction: LeaseKeeper): Promise<void> {
  await Promise.all(transaction.end().map((lease) => endKeeping(leases, lease, transaction)));
}

async function endKeeping(leases: Leases, lease: Lease, transaction: LeaseKeeper): Promise<void> {
  // Where the event loop was blocked, or the machine slept, no timer could notice a loss.
  leases.expire(lease);
  await leases.settleDoubt(lease);
  await leases.leave(lease, transaction);
  if (lease.loss) {
    transaction.notify(lease.loss);
  }
}
