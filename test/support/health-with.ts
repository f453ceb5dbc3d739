import type { HealthReason, LockHealth } from '../../lib/core/words/lock-health';
import type { LockService } from '../../lib/nest/lock.service';
import { until } from './until';

/**
 * The health of the locks, once its reasons are these: a subscription takes a moment, and so does a machine that
 * stalls.
 */
export async function healthWith(locks: LockService, ...reasons: HealthReason[]): Promise<LockHealth> {
  let health: LockHealth | undefined;
  await until(`the reasons ${reasons.join() || 'none'}`, async () => {
    health = await locks.operations.health();
    return health.reasons.join() === reasons.join();
  });
  return health as LockHealth;
}
