import type { Acquisition } from './acquisition.js';
import type { Cycle, CycleCall } from './cycle-call.js';
import type { Lease } from './lease.js';

/** What a call waits for: the lease that has the key at the moment; undefined while its caller still tries. */
export interface Wanted {
  readonly lease: Lease | undefined;
}

/**
 * The cycle that would close if a call waited for `wanted`, by its key `key`: calls of this process that nest in opposite order, each
 * waiting for what the other has. Undefined where there is none.
 */
export function findCycle(
  acquisition: Acquisition,
  key: string,
  wanted: Wanted,
  waiting: ReadonlyMap<Acquisition, Wanted>,
): Cycle | undefined {
  const calls = search(acquisition, key, wanted, waiting, new Set());
  return calls && { scope: 'process', calls };
}

function search(
  closing: Acquisition,
  key: string,
  wanted: Wanted,
  waiting: ReadonlyMap<Acquisition, Wanted>,
  seen: Set<Lease>,
): CycleCall[] | undefined {
  const { lease } = wanted;
  const top = lease?.calls.top;
  if (!lease || !top || seen.has(lease)) {
    return undefined;
  }
  seen.add(lease);
  for (const [blocked, next] of waiting) {
    // The call on top cannot leave while a call made from inside it waits.
    if (top !== blocked.frame && !blocked.frame.isInside(top)) {
      continue;
    }
    const { lease: its } = next;
    const holder = its?.calls.top;
    if (its && holder && (holder === closing.frame || closing.frame.isInside(holder))) {
      return [blocked.inCycle(lease, its.key), closing.inCycle(its, key)];
    }
    const further = search(closing, key, next, waiting, seen);
    if (its && further) {
      return [blocked.inCycle(lease, its.key), ...further];
    }
  }
  return undefined;
}
