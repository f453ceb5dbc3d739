import type { Acquisition } from './acquisition.js';
import type { Cycle, CycleCall } from '../words/cycle-call.js';
import type { Lease } from '../leases/lease.js';

/**
 * The lock that a call waits for. `lease` is the lease that has the key at the moment; it is undefined while another
 * call of this process still tries to acquire the key.
 */
export interface Wanted {
  readonly lease: Lease | undefined;
}

/**
 * The cycle that `closing` would close if it waited for `wanted`, by its key `key`: calls of this process that nest in
 * opposite order, each waiting for a lock that another one has. Undefined where there is none.
 */
export function findCycle(closing: Acquisition, key: string, wanted: Wanted, waiting: ReadonlyMap<Acquisition, Wanted>): Cycle | undefined {
  const seen = new Set<Lease>();
  /** Follows the calls that hold up the lock that `acquisition` wants. */
  const search = (acquisition: Acquisition, { lease }: Wanted): CycleCall[] | undefined => {
    if (!lease || seen.has(lease)) {
      return undefined;
    }
    seen.add(lease);
    for (const [blocked, next] of waiting) {
      if (!lease.calls.isHeldUp(acquisition.frame, blocked.frame)) {
        continue;
      }
      const { lease: its } = next;
      if (its?.calls.isHeldUp(blocked.frame, closing.frame)) {
        return [blocked.inCycle(lease, its.key), closing.inCycle(its, key)];
      }
      const further = search(blocked, next);
      if (its && further) {
        return [blocked.inCycle(lease, its.key), ...further];
      }
    }
    return undefined;
  };
  const calls = search(closing, wanted);
  return calls && { scope: 'process', calls };
}
