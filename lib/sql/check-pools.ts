import { LockConfigurationError } from '../core/words/errors.js';
import { kindOf } from '../core/words/shown.js';

/**
 * The pools as a list; `poolOf` answers undefined for a value that is no pool. Throws `LockConfigurationError` where a
 * value is not a pool, or is in the list twice. `remedy` is the end of a message of the store.
 */
export function checkPools<Pool>(
  source: unknown,
  poolOf: (value: unknown) => Pool | undefined,
  store: string,
  remedy: string,
): readonly Pool[] {
  const given: readonly unknown[] = Array.isArray(source) ? source : [source];
  if (given.length === 0) {
    throw new LockConfigurationError(`${store}: the pool is missing. ${remedy}`);
  }
  const pools = given.map((value, at) => {
    const pool = poolOf(value);
    if (pool === undefined) {
      throw new LockConfigurationError(`${store}: ${whichPool(at, given.length)} is ${kindOf(value)}. ${remedy}`);
    }
    return pool;
  });
  if (new Set(pools).size < pools.length) {
    throw new LockConfigurationError(
      `${store}: a pool is in the list twice. Pass each database once; the position of a pool in the list decides which keys live there.`,
    );
  }
  return pools;
}

/** The name of one of the pools in messages. */
export function whichPool(at: number, count: number): string {
  return count > 1 ? `pool ${at + 1} of ${count}` : 'the pool';
}
