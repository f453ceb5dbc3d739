import { AsyncResource } from 'node:async_hooks';
import type { Clock } from './clock.js';
import { LockLostError } from './errors.js';
import type { Hold } from './hold.js';
import { LONGEST_COMMAND_MS, momentOf, type Moment } from './lease.js';
import type { HoldRecord, LockStore } from './lock-store.js';

/** Leases in one renewal command: 10,000 need fewer than one command per hundred, and none keeps the server for a millisecond. */
const BATCH = 128;
/** The longest pause between two looks at the clocks while leases are held. */
const LONGEST_PAUSE_MS = 1_000;
/** How far the wall clock may run from the monotonic one before it counts as a jump. */
const JUMP_MS = 500;
/** For how long listeners may run in one go before the renewals that became due meanwhile are sent, in milliseconds. */
const TELLING_MS = 5;

/** Keeps the leases of one store: renews every third of a lease, tells of `maxHold`, and ends those that ran out. */
export class Renewer {
  readonly #store: LockStore;
  readonly #clock: Clock;
  readonly #lose: (hold: Hold) => void;
  readonly #failed: (hold: Hold, error: unknown) => void;
  readonly #heard: (hold: Hold) => void;
  readonly #holds = new Set<Hold>();
  #timer: NodeJS.Timeout | undefined;
  #wakesAt = Infinity;
  #seen: Moment = { monotonic: 0, wall: 0 };

  constructor(
    store: LockStore,
    clock: Clock,
    lose: (hold: Hold) => void,
    failed: (hold: Hold, error: unknown) => void,
    heard: (hold: Hold) => void,
  ) {
    this.#store = store;
    this.#clock = clock;
    this.#lose = lose;
    this.#failed = failed;
    this.#heard = heard;
  }

  /** Starts to keep a hold that was just granted. */
  add(hold: Hold, renew: boolean): void {
    const now = this.#clock.monotonic();
    hold.renewAt = renew ? nextRenewal(hold, now) : Infinity;
    this.#holds.add(hold);
    this.#wakeBy(Math.min(dueAt(hold), now + LONGEST_PAUSE_MS));
  }

  /** Something about the hold is due earlier than it was. */
  hasten(hold: Hold): void {
    if (this.#holds.has(hold)) {
      this.#wakeBy(dueAt(hold));
    }
  }

  /** Asks the store once whether it has a hold; undefined where it does not answer. */
  async confirm(hold: Hold): Promise<boolean | undefined> {
    const sent = momentOf(this.#clock);
    const record = renewalOf(hold, sent.monotonic);
    let held: boolean | undefined;
    try {
      [held] = await this.#store.renew([record]);
    } catch (error) {
      this.#failed(hold, error);
    }
    if (held && !hold.ended) {
      hold.extend(sent, record.ttlMs);
    } else if (held === false && !hold.ended) {
      hold.distrust();
      this.#lose(hold);
    }
    return held;
  }

  delete(hold: Hold): void {
    this.#holds.delete(hold);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#wakesAt = Infinity;
    this.#holds.clear();
  }

  #wakeBy(at: number): void {
    if (at >= this.#wakesAt) {
      return;
    }
    if (this.#wakesAt === Infinity && this.#timer === undefined) {
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
   * Renewals go first, and leave before any listener runs; what has to be told is told in the next turn of the event loop.
   * So a listener of one lock, however slow, costs no other lock its lease.
   *
   * Bound to where the store was opened: the timer must not keep the context of the call that armed it.
   */
  readonly #wake = AsyncResource.bind((): void => {
    this.#wakesAt = Infinity;
    const sent = momentOf(this.#clock);
    const jumped = this.#hasJumped(sent);
    let renewing = 0;
    for (const group of byLimit(this.#due(sent.monotonic, jumped))) {
      renewing += this.#renewInBatches(group, jumped ? Infinity : sent.monotonic, sent);
    }
    if (renewing === 0) {
      this.#tell(sent.monotonic);
    }
    this.#wakeForNext();
    if (this.#wakesAt === Infinity) {
      this.#timer = undefined;
    }
  });

  #wakeForNext(): void {
    if (this.#holds.size > 0) {
      let next = this.#clock.monotonic() + LONGEST_PAUSE_MS;
      for (const hold of this.#holds) {
        next = Math.min(next, dueAt(hold));
      }
      this.#wakeBy(next);
    }
  }

  /** The holds to renew now, or nearly. After a jump of the wall clock that is every one: fixed leases, too, have to be confirmed. */
  #due(now: number, jumped: boolean): Hold[] {
    const due: Hold[] = [];
    for (const hold of this.#holds) {
      if (hold.lingering && !hold.gone && now >= hold.deadline) {
        // Nothing is left to renew, and nobody to tell; its own timer still releases it.
        this.#holds.delete(hold);
        continue;
      }
      // One whose maxHold is over is not renewed, also where its code could not be told yet.
      const isKept = now < hold.deadline && (now < hold.maxHoldAt || hold.overdue || hold.lingering);
      if (isKept && !hold.renewing && (jumped ? hold.deadline < Infinity : hold.renewAt - hold.leaseMs / 30 <= now)) {
        due.push(hold);
      }
    }
    return due;
  }

  /** Tells of leases that ended and of `maxHold`, and stops where that takes long: the rest follows in the next turn. */
  #tell(since: number): void {
    let now = since;
    for (const hold of this.#holds) {
      if (now < toldAt(hold)) {
        continue;
      }
      if (now >= hold.deadline) {
        this.#lose(hold);
      } else {
        tellOverdue(hold, now);
      }
      now = this.#clock.monotonic();
      if (now - since > TELLING_MS) {
        return;
      }
    }
  }

  /** Renews what is due by `by`; how many. Leases that are nearly due fill the last batch up, so that many leases need few commands. */
  #renewInBatches(holds: Hold[], by: number, sent: Moment): number {
    holds.sort((first, second) => first.renewAt - second.renewAt);
    const notYet = holds.findIndex((hold) => hold.renewAt > by);
    const end = notYet < 0 ? holds.length : Math.ceil(notYet / BATCH) * BATCH;
    for (let from = 0; from < end; from += BATCH) {
      void this.#renew(holds.slice(from, from + BATCH), sent);
    }
    return end;
  }

  /** A machine that slept stops the monotonic clock only; the leases on the server ran on. */
  #hasJumped(now: Moment): boolean {
    const drift = now.wall - this.#seen.wall - (now.monotonic - this.#seen.monotonic);
    this.#seen = now;
    return Math.abs(drift) > JUMP_MS;
  }

  async #renew(batch: readonly Hold[], sent: Moment): Promise<void> {
    const records = batch.map((hold) => renewalOf(hold, sent.monotonic));
    for (const hold of batch) {
      hold.renewing = true;
    }
    let held: (boolean | undefined)[] | undefined;
    try {
      held = await this.#store.renew(records);
      if (held.some((one) => one !== undefined)) {
        this.#heard(batch[0] as Hold);
      }
    } catch (error) {
      this.#failed(batch[0] as Hold, error);
    }
    const now = this.#clock.monotonic();
    batch.forEach((hold, index) => {
      hold.renewing = false;
      // A hold that was released meanwhile is nobody's business any more.
      if (this.#holds.has(hold)) {
        this.#answered(hold, records[index] as HoldRecord, held?.[index], sent, now);
        this.#wakeBy(dueAt(hold));
      }
    });
  }

  #answered(hold: Hold, { ttlMs, lingering }: HoldRecord, held: boolean | undefined, sent: Moment, now: number): void {
    if (held === false) {
      hold.distrust();
      return;
    }
    if (held) {
      hold.extend(sent, ttlMs);
    }
    if (hold.lingering && !lingering) {
      // Its code ended meanwhile, and the store is still to be told.
      hold.renewAt = now;
    } else if (hold.renewAt < Infinity) {
      // An unknown outcome moves nothing: the old deadline stands, and the renewal is tried again before it.
      hold.renewAt = held ? nextRenewal(hold, now) : now + Math.min(hold.leaseMs / 10, LONGEST_PAUSE_MS);
    }
  }
}

/** What the store is asked for. A lease that is not to be renewed is only confirmed: it is asked for nothing that it does not have. */
export function renewalOf(hold: Hold, now: number): HoldRecord {
  const { key, owner, id, fence, by, lingering } = hold;
  const ttlMs = lingering ? hold.lingerMs(now) : hold.renewAt === Infinity ? 1 : hold.ttlMs;
  return { key, owner, id, fence, ttlMs, by, lingering, limitMs: hold.limitMs };
}

/**
 * When two thirds of the lease that was granted are left, or a little more, so that processes that started together drift apart; at once
 * where the grant took long. For `minHold`, once.
 */
function nextRenewal(hold: Hold, now: number): number {
  if (hold.lingering) {
    return hold.deadline < hold.minHoldAt ? now : Infinity;
  }
  return Math.max(now, hold.deadline - (hold.leaseMs / 3) * (2 + Math.random() / 10));
}

/**
 * Leases of about the same length. A part of a store that is away keeps the answer for the others back for as long as the time
 * limit of its own leases, which would be too long for much shorter ones.
 */
function byLimit(holds: readonly Hold[]): Iterable<Hold[]> {
  const groups = new Map<number, Hold[]>();
  for (const hold of holds) {
    const length = Math.floor(Math.log2(Math.min(hold.limitMs, LONGEST_COMMAND_MS)));
    const group = groups.get(length);
    if (group) {
      group.push(hold);
    } else {
      groups.set(length, [hold]);
    }
  }
  return groups.values();
}

function dueAt(hold: Hold): number {
  return Math.min(hold.renewing ? Infinity : hold.renewAt, toldAt(hold));
}

/** When there is something to tell. Code that has ended loses nothing when its lease does, unless the lock went before `minHold` was over. */
function toldAt(hold: Hold): number {
  if (hold.lingering) {
    return hold.gone ? hold.deadline : Infinity;
  }
  return Math.min(hold.deadline, hold.overdue ? Infinity : hold.maxHoldAt);
}

function tellOverdue(hold: Hold, now: number): void {
  hold.overdue = true;
  hold.renewAt = Infinity;
  // Where leases do not end by time, this one gets an end here.
  hold.deadline = Math.min(hold.deadline, now + hold.ttlMs);
  const told = new LockLostError(
    `Lock "${hold.key}" has been held for its maxHold. It is not renewed any more and ends in ` +
      `${Math.ceil(hold.deadline - now)} ms. Make sure that the code stops when lock.signal aborts, or raise maxHold.`,
    hold.key,
    'maxHold',
  );
  for (const frame of [...hold.frames]) {
    frame.tell(told);
  }
}
