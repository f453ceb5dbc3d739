import { LockConfigurationError } from '../words/errors.js';
import type { LockStore } from '../seam/lock-store.js';

/** Throws `LockConfigurationError` where a store grants no such lease; `asked` is the option that asks for it. */
export function refuseTooLong(
  { longestLeaseMs = Infinity }: Pick<LockStore, 'longestLeaseMs'>,
  key: string,
  leaseMs: number,
  asked: string,
): void {
  if (leaseMs > longestLeaseMs) {
    throw new LockConfigurationError(
      `Lock "${key}": a lease of ${leaseMs} ms was asked for, and the longest of this store is ${longestLeaseMs} ms. ` +
        `Lower ${asked}, or raise longestLease of the store in all processes.`,
      key,
    );
  }
}
