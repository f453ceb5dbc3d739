import type { CallNode } from '../calls/call-tree.js';
import { EnteredTickets } from './entered-tickets.js';
import { Frame } from './frame.js';
import type { Lease } from '../leases/lease.js';
import type { Leases } from '../leases/leases.js';
import type { Shares } from '../words/call-options.js';
import type { TicketEntry } from '../leases/ticket.js';

/**
 * The lock on the key that a call is inside of already: the lease of the nearest enclosing call of these locks, or of
 * an ended call of its transaction; or the ticket of a call that came with tickets. Throws where that lock has ended,
 * or is in doubt. A call that wants a permit looks for a permit, and any other call for a lock.
 */
export function enclosingLock(leases: Leases, key: string, frame: Frame, shares: Shares | undefined): Lease | TicketEntry | undefined {
  for (let at: CallNode | undefined = frame; at; at = at.parent) {
    if (at instanceof Frame) {
      const lease = at.belongsTo(leases) ? leaseOf(at, key, leases) : undefined;
      if (lease && isPermit(lease.shares) === isPermit(shares)) {
        return lease;
      }
    } else if (at instanceof EnteredTickets) {
      const entry = isPermit(shares) ? undefined : at.entryFor(leases.store, key);
      if (entry) {
        return entry;
      }
    }
  }
  return undefined;
}

const isPermit = (shares: Shares | undefined): boolean => typeof shares === 'number';

function leaseOf(call: Frame, key: string, leases: Leases): Lease | undefined {
  const lease = call.leaseOn(key);
  if (lease) {
    call.assertHeld();
    return lease;
  }
  const kept = call.transaction?.keptOn(key);
  const why = kept && (leases.expire(kept) ?? kept.doubt);
  if (why) {
    throw why;
  }
  return kept;
}
