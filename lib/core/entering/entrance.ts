import type { Acquisition } from './acquisition.js';
import { atMost } from '../seam/pause.js';
import type { AttemptResult } from '../leases/attempt.js';
import type { Availability } from '../seam/availability.js';
import type { Call } from '../words/call.js';
import type { CallNode } from '../calls/call-tree.js';
import type { Clock } from '../seam/clock.js';
import type { Contender } from './contender.js';
import { EnteredTickets } from './entered-tickets.js';
import type { EntryEvents } from './entry-events.js';
import { LockConfigurationError } from '../words/errors.js';
import { Frame } from './frame.js';
import { Guests } from '../leases/guests.js';
import { Lease } from '../leases/lease.js';
import { ttlUntil } from '../seam/lease-time.js';
import type { Leases } from '../leases/leases.js';
import type { Lifecycle } from '../seam/lifecycle.js';
import type { Line } from '../leases/line.js';
import type { Lines } from '../leases/lines.js';
import type { LockStore } from '../seam/lock-store.js';
import { LongSections } from './long-sections.js';
import { Owner } from '../leases/owner.js';
import { readTicket, type TicketEntry } from '../leases/ticket.js';
import type { Transaction } from '../transactions/transaction.js';
import type { WaitOutcome } from '../calls/waiter.js';
import type { Waiters } from './waiters.js';

/** What an entrance is made of. */
export interface EntranceParts {
  /** The name under which the store is registered. */
  readonly name: string;
  readonly store: LockStore;
  readonly clock: Clock;
  readonly lifecycle: Lifecycle;
  readonly lines: Lines;
  readonly waiters: Waiters;
  readonly leases: Leases;
  readonly contender: Contender;
  readonly availability: Availability;
  readonly events: EntryEvents;
  /** How many calls may wait for one key. */
  readonly maxPerKey: number;
}

/** Learns how a call's way into its locks has ended: one of the two is called, once. */
export interface EntryListener {
  entered(): void;
  refused(error: unknown): void;
}

/** Where calls enter the locks of one store. A call flows one way: re-entry, the line of its key, the store. */
export class Entrance {
  readonly #parts: EntranceParts;
  readonly #guests = new Guests();
  readonly #longSections: LongSections;

  constructor(parts: EntranceParts) {
    this.#parts = parts;
    this.#longSections = new LongSections(parts.lines, parts.clock, parts.events);
  }

  /**
   * Enters the locks on all keys of a call, in their order; leaves those that it entered where one is refused. A call that meets nobody
   * goes straight: it is inside at once, or with the first answer of the store.
   */
  enter(acquisition: Acquisition<Frame>, listener: EntryListener): void {
    try {
      this.#check(acquisition);
      if (!this.#goesStraight(acquisition, listener)) {
        this.#goOn(this.#enterAll(acquisition), acquisition, listener);
      }
    } catch (error) {
      this.#refuse(error, acquisition, listener);
    }
  }

  #check(acquisition: Acquisition<Frame>): void {
    const { frame, call } = acquisition;
    const [first] = frame.keys as readonly [string];
    this.#refuseTooLong(first, call);
    if (frame.transaction?.loss) {
      // Nobody else can tell the transaction, which may still roll back.
      throw frame.transaction.loss;
    }
    if (call.signal?.aborted) {
      throw acquisition.refused(first, 'aborted');
    }
  }

  /** Whether the call needs no line: it enters the lock of an enclosing call, or a key that no other call here wants. */
  #goesStraight(acquisition: Acquisition<Frame>, listener: EntryListener): boolean {
    const { frame, call } = acquisition;
    if (frame.keys.length > 1 || call.ticket !== undefined || frame.transaction) {
      return false;
    }
    const [key] = frame.keys as readonly [string];
    const inherited = call.reentry === 'context' ? this.#inherited(frame, key) : undefined;
    if (inherited) {
      if (!(inherited instanceof Lease) || !inherited.calls.admits(frame)) {
        return false;
      }
      inherited.calls.push(frame);
      this.#reentered(inherited, acquisition);
      frame.take(inherited);
      this.#complete(acquisition, listener);
      return true;
    }
    const { availability, contender, lifecycle, lines } = this.#parts;
    if (lifecycle.isClosing || lines.lineOf(key) || (call.onUnavailable === 'throw' && availability.isAway)) {
      return false;
    }
    const lease = this.#newLease(key, acquisition);
    const line = lines.open(key);
    lifecycle.begin();
    contender.ask(lease, acquisition, line).then(
      (result) => this.#answered(result, lease, line, acquisition, listener),
      (error: unknown) => {
        lines.endTurn(line);
        lifecycle.end();
        this.#refuse(error, acquisition, listener);
      },
    );
    return true;
  }

  /** What is not granted at once contends on, in the line that it opened. */
  #answered(result: AttemptResult, lease: Lease, line: Line, acquisition: Acquisition<Frame>, listener: EntryListener): void {
    const { contender, leases, lifecycle } = this.#parts;
    if (result.outcome === 'granted' && !contender.gaveUp(acquisition)) {
      leases.start(lease, result, acquisition, line);
      acquisition.frame.take(lease);
      this.#complete(acquisition, listener);
    } else {
      line.goesOnWith(result);
      this.#goOn(this.#enterAll(acquisition, { lease, line }), acquisition, listener);
    }
    lifecycle.end();
  }

  #goOn(entering: Promise<void>, acquisition: Acquisition<Frame>, listener: EntryListener): void {
    entering.then(
      () => this.#complete(acquisition, listener),
      (error: unknown) => this.#refuse(error, acquisition, listener),
    );
  }

  /** The call has all its locks. */
  #complete(acquisition: Acquisition<Frame>, listener: EntryListener): void {
    const { frame, call } = acquisition;
    if (call.signal?.aborted) {
      // Its caller has its answer, and the transaction around it is not to keep what nobody has.
      this.#refuse(acquisition.refused(frame.keys[0] as string, 'aborted'), acquisition, listener);
      return;
    }
    this.#parts.leases.limit(acquisition);
    frame.entered(acquisition.waitedMs);
    this.#ended(acquisition, undefined);
    listener.entered();
  }

  #refuse(refusal: unknown, acquisition: Acquisition<Frame>, listener: EntryListener): void {
    const refuse = (): void => {
      this.#ended(acquisition, refusal);
      listener.refused(refusal);
    };
    const leaving = acquisition.frame.leave();
    if (leaving) {
      // A store that is slow releases what was taken in the background: the caller's time is up.
      void atMost(leaving, acquisition.answerBy - this.#parts.clock.monotonic()).then(refuse);
    } else {
      refuse();
    }
  }

  #ended(acquisition: Acquisition<Frame>, refusal: unknown): void {
    const { waiters, events } = this.#parts;
    waiters.isOver(acquisition);
    acquisition.frame.transaction?.hasEntered(acquisition.frame);
    acquisition.ended(refusal);
    events.ended(acquisition, refusal);
  }

  /** `first` is where the call has asked already for its first key. */
  async #enterAll(acquisition: Acquisition<Frame>, first?: { readonly lease: Lease; readonly line: Line }): Promise<void> {
    const { frame } = acquisition;
    let begun = first;
    for (let at = 0; at < frame.keys.length; at++) {
      frame.take(
        begun
          ? await this.#contend(begun.lease, acquisition, begun.line, false)
          : await this.#enterOne(frame.keys[at] as string, acquisition),
      );
      begun = undefined;
      this.#parts.waiters.isOver(acquisition);
      const lost = at > 0 ? frame.taken.find((lease) => !lease.isLive) : undefined;
      if (lost) {
        await this.#startOver(lost, acquisition);
        at = -1;
      }
    }
  }

  async #enterOne(key: string, acquisition: Acquisition<Frame>): Promise<Lease> {
    const { clock, lifecycle, lines } = this.#parts;
    const { call, frame } = acquisition;
    const ticket = call.ticket === undefined ? undefined : readTicket(call.ticket, key);
    let inherited = call.reentry === 'context' ? this.#inherited(frame, key) : undefined;
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
      return this.#guests.enter(inherited, {
        leftMs: () => acquisition.giveUpAt - clock.monotonic(),
        reenter: (joined) => this.#reenter(joined, acquisition),
        join: () => this.#join(inherited, acquisition),
      });
    }
    const lease = this.#newLease(key, acquisition);
    const taken = lines.lineOf(key);
    const line = taken ?? lines.open(key);
    if (taken) {
      await this.#becomeContender(taken, lease, acquisition);
    }
    return this.#contend(lease, acquisition, line, taken !== undefined);
  }

  #newLease(key: string, acquisition: Acquisition): Lease {
    const { ttlMs, renew: renews, caller } = acquisition.call;
    return new Lease(this.#parts.clock, { key, owner: acquisition.newOwner(), caller, ttlMs, renews });
  }

  /** As the one call of this process that contends for the key. */
  async #contend(lease: Lease, acquisition: Acquisition, line: Line, hasWaited: boolean): Promise<Lease> {
    try {
      await this.#parts.contender.obtain(lease, acquisition, line, hasWaited);
    } catch (error) {
      this.#parts.lines.endTurn(line);
      throw error;
    }
    return lease;
  }

  /** Asks the store to let a call into the lock of a ticket. */
  #join(ticket: TicketEntry, acquisition: Acquisition<Frame>): readonly [Lease, Promise<void>] {
    const { ttlMs, renew: renews, caller } = acquisition.call;
    const { key, secret } = ticket;
    this.#refuseTickets(key);
    const joined = new Lease(this.#parts.clock, { key, owner: new Owner(secret), caller, ttlMs, renews, joined: ticket });
    return [joined, this.#parts.contender.obtain(joined, acquisition)];
  }

  /**
   * The lease on the key of the nearest enclosing call of these locks, or of an ended call of its transaction; or the ticket of a call
   * that came with tickets. Throws where that lock has ended.
   */
  #inherited(frame: Frame, key: string): Lease | TicketEntry | undefined {
    for (let at: CallNode | undefined = frame; at; at = at.parent) {
      if (at instanceof EnteredTickets) {
        const entry = at.entryFor(this.#parts.name, key);
        if (entry) {
          return entry;
        }
      }
      if (!(at instanceof Frame) || !at.belongsTo(this.#parts.leases)) {
        continue;
      }
      const lease = at.leaseOn(key);
      if (lease) {
        at.assertHeld();
        return lease;
      }
      const kept = at.transaction?.keptOn(key);
      if (kept) {
        const why = this.#parts.leases.expire(kept) ?? kept.doubt;
        if (why) {
          throw why;
        }
        return kept;
      }
    }
    return undefined;
  }

  /**
   * Waits while other calls of the transaction acquire the key, so that they do not wait for each other's commit, and enters
   * the lease of one that got it.
   */
  async #besideOthers(transaction: Transaction, key: string, acquisition: Acquisition<Frame>): Promise<Lease | TicketEntry | undefined> {
    const { frame, giveUpAt, call } = acquisition;
    if (call.reentry === 'never') {
      return undefined;
    }
    for (let line = transaction.lineFor(key); line; line = transaction.lineFor(key)) {
      const outcome = await this.#parts.waiters.wait(key, acquisition, giveUpAt, line);
      if (outcome !== 'admitted') {
        throw acquisition.refused(key, outcome, this.#parts.lines.lineOf(key)?.holder);
      }
    }
    const inherited = this.#inherited(frame, key);
    if (!inherited) {
      transaction.enters(key, frame);
    }
    return inherited;
  }

  async #reenter(lease: Lease, acquisition: Acquisition<Frame>): Promise<void> {
    const { key, calls } = lease;
    const { frame } = acquisition;
    if (calls.admits(frame)) {
      calls.push(frame);
    } else {
      acquisition.sees(lease);
      const outcome = await this.#parts.waiters.waitFor({ lease }, key, acquisition, calls.lineFor(frame));
      if (outcome !== 'admitted') {
        throw acquisition.refused(key, outcome, lease);
      }
    }
    this.#reentered(lease, acquisition);
  }

  #reentered(lease: Lease, { call }: Acquisition): void {
    lease.raise(call.ttlMs);
    this.#parts.events.reentered(lease, call.caller);
  }

  /** Waits until the call is the one call of this process that contends for the key. */
  async #becomeContender(line: Line, lease: Lease, acquisition: Acquisition): Promise<void> {
    const outcome = await this.#waitInLine(line, lease, acquisition);
    if (outcome === 'busy' && line.failure) {
      // No holder is known: the store is away.
      throw line.failure;
    }
    if (outcome !== 'admitted') {
      throw acquisition.refused(lease.key, outcome, line.holder);
    }
  }

  async #waitInLine(line: Line, lease: Lease, acquisition: Acquisition): Promise<WaitOutcome> {
    const { availability, maxPerKey, events, waiters } = this.#parts;
    const { call } = acquisition;
    const { key } = lease;
    if (call.onUnavailable === 'throw' && availability.isAway) {
      throw availability.refusal(key);
    }
    if (call.waitMs > 0 && (line.waiting >= maxPerKey || waiters.isFull)) {
      throw acquisition.refused(key, 'tooManyWaiters', line.holder);
    }
    if (call.waitMs > 0) {
      events.queued(lease, line.waiting);
    }
    this.#longSections.watch();
    // Only a call that has a lock, its own or an enclosing one, can be waited for by the one that it waits for.
    const outcome = await (acquisition.isNested
      ? waiters.waitFor(line, key, acquisition, line.behind(lease))
      : waiters.wait(key, acquisition, acquisition.giveUpAt, line.behind(lease)));
    acquisition.sees(line.lastHolder);
    return outcome;
  }

  /** One lock cannot be trusted any more when the next was granted: all are held together, or none is. */
  async #startOver(lost: Lease, acquisition: Acquisition<Frame>): Promise<void> {
    if (!acquisition.obtained.includes(lost)) {
      // It is an enclosing call's lock, and that call has to be notified.
      throw this.#parts.leases.expire(lost) ?? lost.doubt;
    }
    acquisition.startOver();
    // It may have been the one call of its transaction that acquires the key, and would wait for itself.
    acquisition.frame.transaction?.hasEntered(acquisition.frame);
    await acquisition.frame.startOver();
  }

  /** A nested call raises the lease of the lock that it is in, and `minHold` asks for one that covers it. */
  #refuseTooLong(key: string, { ttlMs, minHoldMs }: Call): void {
    const { longestLeaseMs } = this.#parts.store;
    if (longestLeaseMs === undefined) {
      return;
    }
    const leaseMs = Math.max(ttlMs, minHoldMs > 0 ? Math.ceil(ttlUntil(minHoldMs)) : 0);
    if (leaseMs > longestLeaseMs) {
      throw new LockConfigurationError(
        `Lock "${key}": a lease of ${leaseMs} ms was asked for, and the longest of this store is ${longestLeaseMs} ms. ` +
          `Lower ${leaseMs > ttlMs ? 'minHold' : 'ttl'}, or raise longestLease of the store in all processes.`,
        key,
      );
    }
  }

  #refuseTickets(key: string): void {
    if (!this.#parts.store.tickets) {
      throw new LockConfigurationError(
        `Lock "${key}": the store '${this.#parts.name}' does not let calls enter by a ticket. Use a store with the capability 'tickets', or leave the ticket out.`,
        key,
      );
    }
  }
}

function isOf({ secret }: TicketEntry, { owner }: Lease): boolean {
  return new Owner(secret).id === owner.id;
}
