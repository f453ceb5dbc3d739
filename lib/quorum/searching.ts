import type { FoundLock, StoredLock } from '../core/seam/lock-store.js';
import type { RedisKeys } from '../redis/scripts/redis-keys.js';
import { RedisConnection } from '../redis/connection/redis-connection.js';
import type { RedisOrigin } from '../redis/connection/redis-source.js';
import { heldOf, searchKeys } from '../redis/search.js';
import { majorityAmong } from './votes/verdicts.js';

/**
 * Searches servers, one after the other, until they include a server of every majority; each key that is found there is
 * looked up on all servers. Throws the error of the first server that failed, where too many are away.
 */
export async function* searchAll(
  origins: readonly RedisOrigin[],
  names: RedisKeys,
  prefix: string,
  inspect: (key: string) => Promise<StoredLock | null>,
): AsyncGenerator<readonly FoundLock[], void, undefined> {
  const seen = new Set<string>();
  const failures: unknown[] = [];
  let left = origins.length - majorityAmong(origins.length) + 1;
  for (const origin of origins) {
    const connection = new RedisConnection(origin);
    try {
      for await (const keys of searchKeys(connection, names, prefix)) {
        const fresh = keys.filter((key) => !seen.has(key));
        const held = await heldOf(fresh, inspect);
        // Keys that could not be looked up are found again on the next server.
        fresh.forEach((key) => seen.add(key));
        yield held;
      }
      left--;
    } catch (error) {
      failures.push(error);
    } finally {
      connection.close();
    }
    if (left === 0) {
      return;
    }
  }
  throw failures[0];
}
