import type { CallNode } from './call-tree.js';
import type { Lease } from './lease.js';

/** What a call waits for: the lease that has the key at the moment; undefined while its caller still tries. */
export interface Wanted {
  readonly lease: Lease | undefined;
}

/**
 * The keys of a cycle that would close if `call` waited for `wanted`: calls that nest in opposite order, each waiting
 * for what the other has. Undefined where there is none.
 */
export function findCycle(call: CallNode, wanted: Wanted, waiting: ReadonlyMap<CallNode, Wanted>): string[] | undefined {
  return search(call, wanted, waiting, new Set());
}

function search(call: CallNode, wanted: Wanted, waiting: ReadonlyMap<CallNode, Wanted>, seen: Set<Lease>): string[] | undefined {
  const { lease } = wanted;
  const top = lease?.calls.top;
  if (!lease || !top || seen.has(lease)) {
    return undefined;
  }
  seen.add(lease);
  for (const [blocked, next] of waiting) {
    // The call on top cannot leave while a call made from inside it waits.
    if (top !== blocked && !blocked.isInside(top)) {
      continue;
    }
    const holder = next.lease?.calls.top;
    if (next.lease && holder && (holder === call || call.isInside(holder))) {
      return [lease.key, next.lease.key];
    }
    const further = search(call, next, waiting, seen);
    if (further) {
      return [lease.key, ...further];
    }
  }
  return undefined;
}
