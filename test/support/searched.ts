import { LockStoreError } from '../../lib/core/words/errors';
import type { RedisLockStore } from '../../lib/redis/redis-lock-store';

/**
 * The keys that a store finds, without those of a start that was too slow. Searches again where it got no answer: each
 * search has to connect first, within the time of a command.
 */
export async function searched(store: RedisLockStore): Promise<string[]> {
  for (let tries = 1; ; tries++) {
    const found: string[] = [];
    try {
      for await (const part of store.search('')) {
        found.push(...part.map(({ key }) => key).filter((key) => !key.includes('start-up check')));
      }
      return found;
    } catch (error) {
      if (!(error instanceof LockStoreError) || tries === 4) {
        throw error;
      }
    }
  }
}
