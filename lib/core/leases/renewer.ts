import { AsyncResource } from 'node:async_hooks';
import { type Clock, type Moment, momentOf } from '../seam/time.js';
import { asLockError, type LockError, LockStoreError } from '../words/errors.js';
import type { Lease } from './lease.js';
import type { LeaseEvents } from './lease-events.js';
import type { Leases } from './leases.js';
import type { HoldRecord, LockStore } from '../seam/lock-store.js';
import { refuseTooLong } from './longest-lease.js';
import { groupedBy } from '../words/grouped-by.js';

/**
 * Leases in one renewal command: 10,000 need fewer than one command per hundred, and none keeps the server for a
 * millisecond.
 */
const BATCH = 128;
/** The longest pause between two readings of the clocks while leases are held. */
const LONGEST_PAUSE_MS = 1_000;
/** How far the wall clock may run from the monotonic one before it counts as a jump. */
const JUMP_MS = 500;
/** For how long listeners may run in one go before the renewals that became due meanwhile are sent, in milliseconds. */
const NOTIFYING_MS = 5;

/**
 * Keeps the leases of one store: renews every third of a lease, notifies of `maxHold`, and reports those that ran out.
 * One timer stands for the earliest of them; no timer runs while no lease does.
 *
 * | found when the timer fires | what follows |
 * |---|---|
 * | a renewal is due | it is sent, with those that are nearly due; code is notified in the next turn only |
 * | the wall clock has jumped | each lease is confirmed, fixed ones too, as if its renewal were due |
 * | no renewal is due, and a deadline is past | the lease is lost: its code is notified |
 * | no renewal is due, and a `maxHold` is over | the code is notified, and the lease is not renewed any more |
 */
export class Renewer {
  readonly #store: LockStore;
  readonly #clock: Clock;
  readonly #events: LeaseEvents;
  readonly #leases: Leases;
  #timer: NodeJS.Timeout | undefined;
  #wakesAt = Infinity;
  #seen: Moment = { monotonic: 0, wall: 0 };

  constructor(store: LockStore, clock: Clock, events: LeaseEvents, leases: Leases) {
    this.#store = store;
    this.#clock = clock;
    this.#events = events;
    this.#leases = leases;
  }

  /** A lease was just granted. */
  watch({ term, acquiredAt }: Lease): void {
    this.#wakeBy(Math.min(term.dueAt, acquiredAt + LONGEST_PAUSE_MS));
  }

  /** Something about the lease is due earlier than it was. */
  hasten(lease: Lease): void {
    if (lease.isLinked) {
      this.#wakeBy(lease.term.dueAt);
    }
  }

  /**
   * Asks the store once whether it has a lease, and to set a fixed one to at least `fixedMs` from now, where that is
   * given. Answers why the outcome is unknown; undefined where the store has answered.
   */
  async confirm(lease: Lease, fixedMs?: number): Promise<LockError | undefined> {
    const sent = momentOf(this.#clock);
    const record = lease.renewal(sent.monotonic, fixedMs);
    let held: boolean | undefined;
    let failure: LockError | undefined;
    try {
      [held] = await this.#store.renew([record]);
    } catch (error) {
      failure = asLockError(error, lease.key);
      this.#events.renewalFailed(lease, failure);
    }
    if (held && !lease.hasEnded) {
      const margin = lease.margin;
      lease.confirmed(sent, record.ttlMs);
      this.#events.renewed(lease, margin);
    } else if (held === false && !lease.hasEnded) {
      lease.gone();
      this.#leases.lose(lease, 'expired');
    }
    return held === undefined ? (failure ?? unanswered(lease.key)) : undefined;
  }

  /**
   * Has the store set a lease to at least `ttlMs` from now; a lease that is renewed is renewed for as long from then
   * on. Rejects where the store grants no such lease, or where its answer is unknown. A loss is reported as any other.
   */
  async extend(lease: Lease, ttlMs: number): Promise<void> {
    refuseTooLong(this.#store, lease.key, ttlMs, 'ttl');
    if (this.#store.expires) {
      lease.raise(ttlMs);
      const failure = await this.confirm(lease, ttlMs);
      if (failure) {
        throw failure;
      }
    }
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#wakesAt = Infinity;
  }

  #wakeBy(at: number): void {
    if (at >= this.#wakesAt) {
      return;
    }
    if (this.#timer === undefined) {
      this.#seen = momentOf(this.#clock);
    }
    clearTimeout(this.#timer);
    this.#wakesAt = at;
    // The clock is read here: listeners may have run since the caller read it.
    this.#timer = setTimeout(this.#wake, Math.max(1, at - this.#clock.monotonic()));
    // A process that has nothing else to do may end; its leases then run out.
    this.#timer.unref();
  }

  /**
   * Renewals that are due are sent before any listener runs. Where one is sent, code is notified in a later turn of the
   * event loop only. So a slow listener of one lock costs no other lock its lease, unless the listener blocks the event
   * loop for longer than the rest of that lease.
   *
   * Bound to the async context in which the store was opened: the timer must not keep the context of the call that
   * armed it.
   */
  readonly #wake = AsyncResource.bind((): void => {
    this.#wakesAt = Infinity;
    const sent = momentOf(this.#clock);
    const hasJumped = this.#hasJumped(sent);
    let renewing = 0;
    for (const group of byLimit(this.#due(sent.monotonic, hasJumped))) {
      renewing += this.#renewInBatches(group, hasJumped ? Infinity : sent.monotonic, sent);
    }
    if (renewing === 0) {
      this.#notify(sent.monotonic);
    }
    this.#wakeForNext();
    if (this.#wakesAt === Infinity) {
      this.#timer = undefined;
    }
  });

  #wakeForNext(): void {
    const latest = this.#clock.monotonic() + LONGEST_PAUSE_MS;
    let next = Infinity;
    for (const { term } of this.#leases.running) {
      // A lease that does not end by time has no clocks to watch.
      next = Math.min(next, term.dueAt, term.deadline < Infinity ? latest : Infinity);
    }
    this.#wakeBy(next);
  }

  /**
   * The leases to renew now, or nearly. After a jump of the wall clock that is every one: fixed leases, too, have to be
   * confirmed.
   */
  #due(now: number, hasJumped: boolean): Lease[] {
    const due: Lease[] = [];
    for (const lease of this.#leases.running) {
      if (lease.state === 'lingering' && now >= lease.term.deadline) {
        // Nothing is left to renew, and its code has ended; its own timer still releases it.
        lease.term.setRenewed(false, now);
      } else if (lease.term.needsRenewal(now, hasJumped)) {
        due.push(lease);
      }
    }
    return due;
  }

  /**
   * Notifies of leases that ended and of `maxHold`, and stops where that takes long: the rest follows in the next turn.
   */
  #notify(since: number): void {
    let now = since;
    for (const lease of this.#leases.running) {
      // A listener may have ended it.
      if (now < lease.term.notifyAt || !lease.isLinked) {
        continue;
      }
      if (now >= lease.term.deadline) {
        this.#leases.lose(lease, 'expired');
      } else {
        lease.overdue(now);
      }
      now = this.#clock.monotonic();
      if (now - since > NOTIFYING_MS) {
        return;
      }
    }
  }

  /**
   * Renews the leases that are due by `by`, and answers how many leases it renews. Leases that are nearly due fill up
   * the last batch, so that many leases need few commands.
   */
  #renewInBatches(leases: Lease[], by: number, sent: Moment): number {
    leases.sort((first, second) => first.term.renewAt - second.term.renewAt);
    const notYet = leases.findIndex((lease) => lease.term.renewAt > by);
    const end = notYet < 0 ? leases.length : Math.ceil(notYet / BATCH) * BATCH;
    for (let from = 0; from < end; from += BATCH) {
      void this.#renew(leases.slice(from, from + BATCH), sent);
    }
    return end;
  }

  /** A machine that slept stops the monotonic clock only; the leases on the server ran on. */
  #hasJumped(now: Moment): boolean {
    const drift = now.wall - this.#seen.wall - (now.monotonic - this.#seen.monotonic);
    this.#seen = now;
    return Math.abs(drift) > JUMP_MS;
  }

  async #renew(batch: readonly Lease[], sent: Moment): Promise<void> {
    const records = batch.map((lease) => lease.renewal(sent.monotonic));
    for (const lease of batch) {
      lease.term.setRenewing(true);
    }
    const [first] = batch as readonly [Lease];
    let held: (boolean | undefined)[] | undefined;
    try {
      held = await this.#store.renew(records);
    } catch (error) {
      this.#events.renewalFailed(first, asLockError(error, first.key));
    }
    // The answers are stored before events tell of them: listeners may run for longer than the rest of a lease.
    const margins = batch.map((lease, index) => {
      const margin = held?.[index] && !lease.hasEnded ? lease.margin : undefined;
      this.hasten(lease.renewalAnswered(held?.[index], records[index] as HoldRecord, sent));
      return margin;
    });
    if (held?.some((one) => one !== undefined)) {
      this.#events.renewalAnswered(first);
    }
    margins.forEach((margin, index) => {
      if (margin !== undefined) {
        this.#events.renewed(batch[index] as Lease, margin);
      }
    });
  }
}

/** The failure of a store that cannot say of a lease whether it has it, as a quorum without a majority. */
function unanswered(key: string): LockError {
  return new LockStoreError(`Lock "${key}": the store could not say whether it has the lease. Repeat the call.`, key, {
    unknown: true,
  });
}

/**
 * Leases of about the same length. A part of a store that is away keeps the answer for the others back for as long as
 * the time limit of its own leases, which would be too long for much shorter ones.
 */
function byLimit(leases: readonly Lease[]): Iterable<Lease[]> {
  return groupedBy(leases, ({ limitMs }) => Math.floor(Math.log2(limitMs))).values();
}
