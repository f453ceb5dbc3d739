import type { Acquisition } from './acquisition.js';
import { Contender } from './contender.js';
import type { EnteringParts } from './entering-parts.js';
import { enclosingLock } from './enclosing-locks.js';
import { LockConfigurationError } from '../words/errors.js';
import { Guests } from './guests.js';
import { Lease } from '../leases/lease.js';
import type { Line } from '../leases/line.js';
import { LongSections } from './long-sections.js';
import { Owner } from '../leases/hold.js';
import { readTicket, type TicketEntry } from '../leases/ticket.js';
import type { Transaction } from '../transactions/transaction.js';
import type { WaitingLine, WaitOutcome } from '../calls/waiter.js';
import type { Wanted } from './cycle.js';

/**
 * The way of a call that does not go straight: it enters one key after the other, each by an enclosing lease, by a
 * ticket, or through the line of the key.
 */
export class KeyByKey {
  readonly #parts: EnteringParts;
  readonly #contender: Contender;
  readonly #guests: Guests;
  readonly #longSections: LongSections;

  constructor(parts: EnteringParts) {
    this.#parts = parts;
    this.#contender = new Contender(parts);
    this.#guests = new Guests(parts.lifecycle);
    this.#longSections = new LongSections(parts.lines, parts.events);
  }

  /** `first` is where the call has asked already for its first key. */
  async enter(acquisition: Acquisition, first?: { readonly lease: Lease; readonly line: Line }): Promise<void> {
    const { frame } = acquisition;
    let begun = first;
    for (let at = 0; at < frame.keys.length; at++) {
      try {
        frame.take(
          begun ? await this.#contend(begun.lease, acquisition, begun.line) : await this.#enterOne(frame.keys[at] as string, acquisition),
        );
      } finally {
        this.#parts.waiters.isOver(acquisition);
      }
      begun = undefined;
      const lost = at > 0 ? frame.taken.find((lease) => !lease.isLive) : undefined;
      if (lost) {
        await this.#startOver(lost, acquisition);
        at = -1;
      }
    }
  }

  async #enterOne(key: string, acquisition: Acquisition): Promise<Lease> {
    const { lifecycle } = this.#parts;
    const { call, frame } = acquisition;
    const ticket = call.ticket === undefined ? undefined : readTicket(call.ticket, key);
    let inherited = call.reentry === 'context' ? enclosingLock(this.#parts.leases, key, frame, call.shares) : undefined;
    if (!inherited && frame.transaction) {
      inherited = await this.#besideOthers(frame.transaction, key, acquisition);
    }
    if (inherited instanceof Lease && (!ticket || isOf(ticket, inherited))) {
      await this.#reenter(inherited, acquisition);
      return inherited;
    }
    if (lifecycle.isClosing) {
      throw acquisition.refused(key, 'shutdown');
    }
    if (ticket) {
      const [joined, isIn] = this.#join(ticket, acquisition);
      await isIn;
      return joined;
    }
    if (inherited && !(inherited instanceof Lease)) {
      const reenter = (joined: Lease): Promise<void> => this.#reenter(joined, acquisition);
      return this.#guests.enter(inherited, acquisition, reenter, () => this.#join(inherited, acquisition));
    }
    return this.#queue(key, acquisition);
  }

  /** Waits in the line of the key until the call is its contender, and contends. */
  async #queue(key: string, acquisition: Acquisition): Promise<Lease> {
    const { lines } = this.#parts;
    const lease = acquisition.newLease(key);
    const taken = lines.lineOf(key);
    if (typeof lease.shares === 'number' && taken?.lease) {
      // A call here has the key as a lock. The store refuses a permit of it, as in any other process.
      await this.#contender.obtain(lease, acquisition);
      return lease;
    }
    const line = taken ?? lines.open(key);
    if (taken) {
      await this.#becomeContender(taken, lease, acquisition);
    }
    return this.#contend(lease, acquisition, line);
  }

  /** Contends for the key, as the one call of this process that does. */
  async #contend(lease: Lease, acquisition: Acquisition, line: Line): Promise<Lease> {
    try {
      await this.#contender.obtain(lease, acquisition, line);
    } catch (error) {
      this.#parts.lines.endTurn(line);
      throw error;
    }
    return lease;
  }

  /** Asks the store to let a call into the lock of a ticket. */
  #join(ticket: TicketEntry, acquisition: Acquisition): readonly [Lease, Promise<void>] {
    const { key } = ticket;
    const { store, leases } = this.#parts;
    if (!store.tickets) {
      throw new LockConfigurationError(
        `Lock "${key}": the store '${leases.store}' does not let calls enter by a ticket. Use a store with the capability 'tickets', or leave the ticket out.`,
        key,
      );
    }
    const joined = acquisition.newLease(key, ticket);
    if (joined.shares === 'read') {
      acquisition.refuseUpgrade(joined);
    }
    return [joined, this.#contender.obtain(joined, acquisition)];
  }

  /**
   * Waits while other calls of the transaction acquire the key, so that calls do not wait for each other's commit, and
   * enters the lease of the call that got it.
   */
  async #besideOthers(transaction: Transaction, key: string, acquisition: Acquisition): Promise<Lease | TicketEntry | undefined> {
    const { frame, call } = acquisition;
    if (call.reentry === 'never') {
      return undefined;
    }
    const { lines } = this.#parts;
    // The other call may not have begun to wait in the line of the key.
    const wanted: Wanted = {
      get lease() {
        return lines.lineOf(key)?.lease;
      },
    };
    for (let line = transaction.lineFor(key); line; line = transaction.lineFor(key)) {
      this.#refuseTooMany(acquisition, key);
      const outcome = await this.#waitBehind(line, wanted, key, acquisition);
      if (outcome !== 'admitted') {
        throw acquisition.refused(key, outcome, lines.lineOf(key)?.holder);
      }
    }
    const inherited = enclosingLock(this.#parts.leases, key, frame, call.shares);
    if (!inherited) {
      transaction.enters(key, frame);
    }
    return inherited;
  }

  async #reenter(lease: Lease, acquisition: Acquisition): Promise<void> {
    const { key, calls } = lease;
    const { frame } = acquisition;
    if (lease.shares === 'read') {
      acquisition.refuseUpgrade(lease);
    }
    if (calls.admits(frame)) {
      calls.push(frame);
    } else {
      acquisition.sees(lease);
      const outcome = await this.#parts.waiters.waitFor({ lease }, key, acquisition, calls.lineFor(frame));
      if (outcome !== 'admitted') {
        throw acquisition.refused(key, outcome, lease);
      }
    }
    lease.raise(acquisition.call.ttlMs);
    this.#parts.events.reentered(lease, acquisition.call.caller);
  }

  /** Waits until the call is the one call of this process that contends for the key. */
  async #becomeContender(line: Line, lease: Lease, acquisition: Acquisition): Promise<void> {
    const { availability, events } = this.#parts;
    const { call } = acquisition;
    const { key } = lease;
    if (call.onUnavailable === 'throw' && availability.isAway) {
      throw availability.refusal(key);
    }
    this.#refuseTooMany(acquisition, key);
    if (call.waitMs > 0) {
      events.queued(lease, line.waiting);
    }
    this.#longSections.watch();
    const outcome = await this.#waitBehind(line.behind(lease, acquisition.hasAsked), line, key, acquisition);
    acquisition.sees(line.lastHolder);
    if (outcome === 'busy' && line.failure) {
      // No holder is known: the store is away.
      throw line.failure;
    }
    if (outcome !== 'admitted') {
      throw acquisition.refused(key, outcome, line.holder);
    }
  }

  #refuseTooMany(acquisition: Acquisition, key: string): void {
    const { lines, waiters } = this.#parts;
    if (waiters.isFullFor(acquisition, key)) {
      throw acquisition.refused(key, 'tooManyWaiters', lines.lineOf(key)?.holder);
    }
  }

  /** Only a call that has a lock, its own or an enclosing one, can be waited for by the one that it waits for. */
  #waitBehind(line: WaitingLine, wanted: Wanted, key: string, acquisition: Acquisition): Promise<WaitOutcome> {
    const { waiters } = this.#parts;
    return acquisition.isNested
      ? waiters.waitFor(wanted, key, acquisition, line)
      : waiters.wait(key, acquisition, acquisition.giveUpAt, line);
  }

  /** A lock cannot be trusted any more when the next was granted: all locks are held together, or none is. */
  async #startOver(lost: Lease, acquisition: Acquisition): Promise<void> {
    if (!acquisition.obtained.includes(lost)) {
      // The lost lock belongs to an enclosing call, and that call has to be notified.
      throw this.#parts.leases.expire(lost) ?? lost.doubt;
    }
    acquisition.startOver();
    // The call may have been the one call of its transaction that acquires the key, and would wait for itself.
    acquisition.frame.transaction?.hasEntered(acquisition.frame);
    await acquisition.frame.startOver();
  }
}

function isOf({ secret }: TicketEntry, { owner }: Lease): boolean {
  return new Owner(secret).id === owner.id;
}
