import type { Acquisition } from './acquisition.js';
import type { Lease } from '../leases/lease.js';
import type { Lifecycle } from '../seam/lifecycle.js';
import type { TicketEntry } from '../leases/ticket.js';
import { atMost } from '../seam/time.js';

/** A lease on its way into the lock of a ticket. */
interface Guest {
  readonly lease: Lease;
  /** Settles when the lease is in, or was refused. Never rejects. */
  readonly joining: Promise<void>;
}

/**
 * The leases by which calls that came with tickets are in the locks of these tickets. Each ticket of a call has one
 * lease. The locked calls inside such a call take turns in that lease, as the children of a locked call do.
 */
export class Guests {
  readonly #lifecycle: Lifecycle;
  readonly #guests = new WeakMap<TicketEntry, Guest>();

  constructor(lifecycle: Lifecycle) {
    this.#lifecycle = lifecycle;
  }

  /**
   * Enters the lease that is in the lock of the ticket by `reenter`; or a new lease, which `join` makes and asks the
   * store to let in.
   */
  async enter(
    ticket: TicketEntry,
    acquisition: Acquisition,
    reenter: (lease: Lease) => Promise<void>,
    join: () => readonly [lease: Lease, joined: Promise<void>],
  ): Promise<Lease> {
    let guest = this.#guests.get(ticket);
    // No `await` between reading `#guests` and entering: two callers would both join.
    while (guest?.lease.state === 'wanted') {
      if (acquisition.leftMs <= 0) {
        throw acquisition.refused(ticket.key, 'busy');
      }
      await atMost(guest.joining, acquisition.leftMs);
      const gaveUp = acquisition.gaveUp(this.#lifecycle.isClosing);
      if (gaveUp) {
        throw acquisition.refused(ticket.key, gaveUp);
      }
      guest = this.#guests.get(ticket);
    }
    if (guest?.lease.hasCode && guest.lease.doubt) {
      // The code of the guest runs, and may still have the lock.
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
