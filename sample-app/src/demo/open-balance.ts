import { describeLockPlace, type LockPlace } from '../lock-place.js';
import { connectMySqlBalance } from './mysql.balance.js';
import { connectPostgresBalance } from './postgres.balance.js';
import { connectRedisBalance } from './redis.balance.js';
import type { SharedBalance } from './shared-balance.js';
import { VariableBalance } from './variable.balance.js';

/** A balance for all processes that share these locks. */
export async function openBalance(locks: LockPlace): Promise<SharedBalance> {
  switch (locks.store) {
    case 'memory':
      return new VariableBalance();
    case 'redis':
      return connectRedisBalance(locks.url, 'REDIS_URL');
    case 'quorum':
      return connectRedisBalance(firstOf(locks.urls), 'REDIS_URLS');
    case 'postgres':
      return connectPostgresBalance(locks.url);
    case 'mysql':
      return connectMySqlBalance(locks.url);
  }
}

/** Where that balance is, for people. A quorum is of use for locks alone: whatever they protect is somewhere else. */
export function describeBalancePlace(locks: LockPlace): string {
  return describeLockPlace(locks.store === 'quorum' ? { store: 'redis', url: firstOf(locks.urls) } : locks);
}

function firstOf([first]: readonly string[]): string {
  return first as string;
}
