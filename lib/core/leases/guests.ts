import { atMost } from '../seam/time.js';
import type { Lease } from './lease.js';
import type { TicketEntry } from './ticket.js';

/** A lease on its way into the lock of a ticket. */
interface Guest {
  readonly lease: Lease;
  /** Settles when the lease is in, or was refused. Never rejects. */
  readonly joining: Promise<void>;
}

/** How a call enters the lock of a ticket. */
export interface GuestEntry {
  /** For how long it may still wait, in milliseconds. */
  readonly leftMs: () => number;
  /** The error of a call that may not wait for another one that asks to be let in. */
  readonly busy: () => Error;
  /** Enters a lease of this process that is in the lock. */
  readonly reenter: (lease: Lease) => Promise<void>;
  /** Makes a lease, and asks the store to let it in. */
  readonly join: () => readonly [lease: Lease, joined: Promise<void>];
}

/**
 * The leases of calls that came with tickets, one for each ticket of a call: what runs inside such a call takes turns in one lease, as the
 * children of a locked call do.
 */
export class Guests {
  readonly #guests = new WeakMap<TicketEntry, Guest>();

  /** Enters the lease that is in the lock of the ticket, or a new one. */
  async enter(ticket: TicketEntry, { leftMs, busy, reenter, join }: GuestEntry): Promise<Lease> {
    let guest = this.#guests.get(ticket);
    // No `await` between reading `#guests` and entering: two callers would both join.
    while (guest?.lease.state === 'wanted') {
      if (leftMs() <= 0) {
        throw busy();
      }
      await atMost(guest.joining, leftMs());
      guest = this.#guests.get(ticket);
    }
    if (guest?.lease.hasCode && guest.lease.doubt) {
      // Its code runs, and may still have the lock.
      throw guest.lease.doubt;
    }
    if (guest?.lease.isLive && guest.lease.hasCode) {
      await reenter(guest.lease);
      return guest.lease;
    }
    const [lease, joined] = join();
    this.#guests.set(ticket, { lease, joining: joined.catch(() => this.#refused(ticket, lease)) });
    await joined;
    return lease;
  }

  #refused(ticket: TicketEntry, lease: Lease): void {
    if (this.#guests.get(ticket)?.lease === lease) {
      this.#guests.delete(ticket);
    }
  }
}
