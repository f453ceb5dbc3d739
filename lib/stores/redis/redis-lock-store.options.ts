import { checkOptions } from '../../core/words/check-options.js';
import { LockConfigurationError } from '../../core/words/errors.js';
import { shown } from '../../core/words/shown.js';

/** Options of the Redis store. */
export interface RedisLockStoreOptions {
  /**
   * How many replicas must have a lock before it counts, and must have each renewal. A failover to one of them then loses no
   * lock. While fewer confirm, nothing is granted and leases run out. Costs a second command for each grant, and two
   * connections. Default: 0.
   */
  minReplicas?: number | undefined;
}

/** The number of replicas; throws `LockConfigurationError` for anything that is not one. */
export function checkMinReplicas(options: RedisLockStoreOptions): number {
  checkOptions('RedisLockStore', options, { minReplicas: true });
  const { minReplicas = 0 } = options as { minReplicas?: unknown };
  if (typeof minReplicas !== 'number' || !Number.isSafeInteger(minReplicas) || minReplicas < 0) {
    throw new LockConfigurationError(
      `RedisLockStore: minReplicas is ${shown(minReplicas)}. Use a whole number from 0: how many replicas must confirm a lock before it counts.`,
    );
  }
  return minReplicas;
}
