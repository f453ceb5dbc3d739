import { AsyncResource } from 'node:async_hooks';
import type { Clock } from './clock.js';
import { LockLostError } from './errors.js';
import type { Hold } from './hold.js';
import type { LockStore } from './lock-store.js';
import type { LossCause } from './loss.js';

/** Leases in one renewal command: 10,000 need fewer than one command per hundred, and none keeps the server for a millisecond. */
const BATCH = 128;
/** The longest pause between two looks at the clocks while leases are held. */
const LONGEST_PAUSE_MS = 1_000;
/** How far the wall clock may run from the monotonic one before it counts as a jump. */
const JUMP_MS = 500;

/** Keeps the leases of one store: renews every third of a ttl, tells of `maxHold`, and ends those that ran out. */
export class Renewer {
  readonly #store: LockStore;
  readonly #clock: Clock;
  readonly #lose: (hold: Hold, cause: LossCause) => void;
  readonly #failed: (hold: Hold, error: unknown) => void;
  readonly #answered: (hold: Hold) => void;
  readonly #holds = new Set<Hold>();
  #timer: NodeJS.Timeout | undefined;
  #wakesAt = Infinity;
  #monotonic = 0;
  #wall = 0;

  constructor(
    store: LockStore,
    clock: Clock,
    lose: (hold: Hold, cause: LossCause) => void,
    failed: (hold: Hold, error: unknown) => void,
    answered: (hold: Hold) => void,
  ) {
    this.#store = store;
    this.#clock = clock;
    this.#lose = lose;
    this.#failed = failed;
    this.#answered = answered;
  }

  /** Starts to keep a hold that was just granted. */
  add(hold: Hold, renew: boolean): void {
    const now = this.#clock.monotonic();
    hold.renewAt = renew ? nextRenewal(hold, now, hold.ttlMs) : Infinity;
    this.#holds.add(hold);
    this.#wakeBy(Math.min(dueAt(hold), now + LONGEST_PAUSE_MS), now);
  }

  /** Something about the hold is due earlier than it was. */
  hasten(hold: Hold): void {
    if (this.#holds.has(hold)) {
      this.#wakeBy(dueAt(hold), this.#clock.monotonic());
    }
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

  #wakeBy(at: number, now: number): void {
    if (at >= this.#wakesAt) {
      return;
    }
    if (this.#wakesAt === Infinity) {
      this.#monotonic = now;
      this.#wall = this.#clock.wall();
    }
    clearTimeout(this.#timer);
    this.#wakesAt = at;
    this.#timer = setTimeout(this.#wake, Math.max(1, at - now));
    // A process that has nothing else to do may end; its leases then run out.
    this.#timer.unref();
  }

  /** Bound to where the store was opened: the timer must not keep the context of the call that armed it. */
  readonly #wake = AsyncResource.bind((): void => {
    this.#wakesAt = Infinity;
    const now = this.#clock.monotonic();
    const jumped = this.#hasJumped(now);
    const due: Hold[] = [];
    for (const hold of this.#holds) {
      if (now >= hold.deadline) {
        this.#lose(hold, 'expired');
        continue;
      }
      if (now >= hold.maxHoldAt && !hold.overdue) {
        tellOverdue(hold, now);
      }
      if (!hold.renewing && hold.renewAt < Infinity && (jumped || hold.renewAt - hold.ttlMs / 30 <= now)) {
        due.push(hold);
      }
    }
    for (const group of byTtl(due)) {
      this.#renewInBatches(group, jumped ? Infinity : now, now);
    }
    let next = now + LONGEST_PAUSE_MS;
    for (const hold of this.#holds) {
      next = Math.min(next, dueAt(hold));
    }
    if (this.#holds.size > 0) {
      this.#wakeBy(next, now);
    }
  });

  /** Renews what is due by `by`. Leases that are nearly due fill the last batch up, so that many leases need few commands. */
  #renewInBatches(holds: Hold[], by: number, now: number): void {
    holds.sort((first, second) => first.renewAt - second.renewAt);
    const due = holds.findIndex((hold) => hold.renewAt > by);
    const end = due < 0 ? holds.length : Math.ceil(due / BATCH) * BATCH;
    for (let from = 0; from < end; from += BATCH) {
      void this.#renew(holds.slice(from, from + BATCH), now);
    }
  }

  /** A machine that slept stops the monotonic clock only; the leases on the server ran on. */
  #hasJumped(now: number): boolean {
    const wall = this.#clock.wall();
    const drift = wall - this.#wall - (now - this.#monotonic);
    this.#wall = wall;
    this.#monotonic = now;
    return Math.abs(drift) > JUMP_MS;
  }

  async #renew(batch: readonly Hold[], sentAt: number): Promise<void> {
    const ttls = batch.map((hold) => hold.ttlMs);
    for (const hold of batch) {
      hold.renewing = true;
    }
    let held: (boolean | undefined)[] | undefined;
    try {
      held = await this.#store.renew(batch);
      if (held.some((one) => one !== undefined)) {
        this.#answered(batch[0] as Hold);
      }
    } catch (error) {
      this.#failed(batch[0] as Hold, error);
    }
    const now = this.#clock.monotonic();
    batch.forEach((hold, index) => {
      hold.renewing = false;
      // A hold that was released meanwhile is nobody's business any more.
      if (!this.#holds.has(hold)) {
        return;
      }
      const ttlMs = ttls[index] as number;
      if (held?.[index] === false) {
        this.#lose(hold, 'gone');
        return;
      }
      const renewed = held?.[index] === true;
      if (renewed) {
        hold.extend(sentAt, ttlMs);
      }
      if (hold.lingering || !hold.overdue) {
        // An unknown outcome moves nothing: the old deadline stands, and the renewal is tried again before it.
        hold.renewAt = renewed ? nextRenewal(hold, now, ttlMs) : now + Math.min(ttlMs / 10, LONGEST_PAUSE_MS);
      }
      this.#wakeBy(dueAt(hold), now);
    });
  }
}

/**
 * A third of the ttl that was asked for, up to a tenth earlier, so that processes that started together drift apart; for
 * `minHold`, once. A nested call may have raised the hold's ttl since, which is not granted yet.
 */
function nextRenewal(hold: Hold, now: number, ttlMs: number): number {
  if (hold.lingering) {
    return hold.deadline < hold.minHoldAt ? now : Infinity;
  }
  return now + (ttlMs / 3) * (1 - Math.random() / 10);
}

/**
 * Leases of about the same length. A part of a store that is away keeps the answer for the others back for as long as its own
 * ttls allow, a quarter of them or a second, which would be too long for much shorter ones.
 */
function byTtl(holds: readonly Hold[]): Iterable<Hold[]> {
  const groups = new Map<number, Hold[]>();
  for (const hold of holds) {
    const length = Math.min(Math.floor(Math.log2(hold.ttlMs)), 12);
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
  return Math.min(hold.renewing ? Infinity : hold.renewAt, hold.deadline, hold.overdue ? Infinity : hold.maxHoldAt);
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
