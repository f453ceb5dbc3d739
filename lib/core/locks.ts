import { hostname } from 'node:os';
import { orAbort } from './abort.js';
import { Availability } from './availability.js';
import { atMost } from './at-most.js';
import { BackgroundReleases } from './background-releases.js';
import type { Call } from './call.js';
import { systemClock, type Clock } from './clock.js';
import { Contender } from './contender.js';
import { currentFrame, liveParent } from './context.js';
import { Entry } from './entry.js';
import { LockConfigurationError, LockNotAcquiredError, type NotAcquiredReason } from './errors.js';
import { Handles } from './handles.js';
import { Hold } from './hold.js';
import { Holds } from './holds.js';
import { ttlUntil } from './lease.js';
import type { Line } from './line.js';
import { LocalQueue } from './local-queue.js';
import { LockFrame } from './lock-frame.js';
import type { LockStore } from './lock-store.js';
import type { Lock } from './lock.js';
import { LongSections } from './long-sections.js';
import { Reporter, type LockTrouble } from './reporter.js';
import { readTicket } from './ticket.js';
import type { WaitOutcome } from './waiter.js';
import { Waiters } from './waiters.js';

/** How many callers may wait: for one key, and for all keys together. */
export interface MaxWaiters {
  readonly perKey: number;
  readonly perProcess: number;
}

/** What the locks of one store need to know of their application. */
export interface LocksSettings {
  readonly name: string;
  readonly store: LockStore;
  readonly maxWaiters: MaxWaiters;
  readonly onTrouble: (trouble: LockTrouble) => void;
  readonly clock?: Clock;
  /** Writes a line of the debug log; undefined: there is none. */
  readonly debug?: ((line: string) => void) | undefined;
}

/**
 * The locks of one store of one application. A call flows one way: re-entry, the local queue, the store, the body,
 * release, next in line.
 */
export class Locks {
  readonly store: LockStore;
  readonly #clock: Clock;
  readonly #maxPerKey: number;
  readonly #reporter: Reporter;
  readonly #queue: LocalQueue;
  readonly #waiters: Waiters;
  readonly #releases: BackgroundReleases;
  readonly #holds: Holds;
  readonly #contender: Contender;
  readonly #availability: Availability;
  readonly #longSections: LongSections;
  readonly #handles: Handles;
  #ending: Promise<void> | undefined;
  readonly #process = `${hostname()} (pid ${process.pid})`;

  constructor(settings: LocksSettings) {
    this.store = settings.store;
    this.#maxPerKey = settings.maxWaiters.perKey;
    this.#clock = settings.clock ?? systemClock;
    this.#availability = new Availability(this.#clock);
    this.#reporter = new Reporter(settings.name, settings.onTrouble, this.#availability, settings.debug);
    this.#waiters = new Waiters(this.#clock, settings.maxWaiters.perProcess);
    this.#releases = new BackgroundReleases(this.store, this.#clock);
    this.#queue = new LocalQueue(this.store, this.#clock, this.#releases);
    this.#holds = new Holds(this.store, this.#clock, this.#queue, this.#releases, this.#reporter);
    this.#contender = new Contender(
      this.store,
      this.#clock,
      this.#queue,
      this.#holds,
      this.#releases,
      this.#waiters,
      this.#reporter,
      this.#availability,
    );
    this.#longSections = new LongSections(this.#queue, this.#clock, this.#reporter);
    this.#handles = new Handles((frame) => this.#reportUnreleased(frame));
  }

  /** Enters the lock on `keys`, which are sorted, each once; whoever called leaves it. */
  async enter(keys: readonly string[], call: Call, isHandle: boolean): Promise<LockFrame> {
    this.#refuseTooLong(keys[0] as string, call);
    const by = call.by === '' ? this.#process : `${this.#process} ${call.by}`;
    const entry = new Entry(call, new LockFrame(keys, currentFrame(), isHandle), by, this.#clock);
    const { signal } = call;
    if (signal?.aborted) {
      throw entry.refused(keys[0] as string, 'aborted');
    }
    const entering = this.#enterAll(entry);
    return signal ? orAbort(entering, entry, signal) : entering;
  }

  /** Enters the lock on behalf of a caller who leaves it by a handle. */
  async acquire(keys: readonly string[], call: Call): Promise<Lock> {
    return this.#handles.give(await this.enter(keys, call, true));
  }

  #reportUnreleased(frame: LockFrame): void {
    for (const hold of frame.holds) {
      this.#reporter.unreleased(hold, this.#clock.monotonic() - hold.acquiredAt);
    }
  }

  /** Rejects waiters and new calls, and ends what runs. */
  shutdown(): Promise<void> {
    return (this.#ending ??= this.#end());
  }

  async #end(): Promise<void> {
    this.#waiters.close();
    // What is still on its way is given back too, before the store is closed.
    await Promise.all([this.#contender.drained(), this.#holds.shutdown()]);
    await this.#releases.settle();
  }

  /** Calls of this process that wait for the key. */
  waitingFor(key: string): number {
    return this.#queue.lineOf(key)?.waiting ?? 0;
  }

  /** A nested call raises the lease of the lock that it is in, and `minHold` asks for one that covers it. */
  #refuseTooLong(key: string, { ttlMs, minHoldMs }: Call): void {
    const { longestLeaseMs = Infinity } = this.store;
    const leaseMs = Math.max(ttlMs, minHoldMs > 0 ? Math.ceil(ttlUntil(minHoldMs)) : 0);
    if (leaseMs > longestLeaseMs) {
      throw new LockConfigurationError(
        `Lock "${key}": a lease of ${leaseMs} ms was asked for, and the longest of this store is ${longestLeaseMs} ms. ` +
          `Lower ${leaseMs > ttlMs ? 'minHold' : 'ttl'}, or raise longestLease of the store in all processes.`,
        key,
      );
    }
  }

  async #enterAll(entry: Entry): Promise<LockFrame> {
    const { frame } = entry;
    let gaveUp: NotAcquiredReason | undefined;
    try {
      for (let at = 0; at < frame.keys.length; at++) {
        frame.holds.push(await this.#enterOne(frame.keys[at] as string, entry));
        const lost = at > 0 ? frame.holds.find((hold) => !hold.isLive()) : undefined;
        if (lost) {
          await startOver(lost, entry);
          at = -1;
        }
      }
      this.#holds.limit(entry);
      frame.entered(entry.waitedMs);
    } catch (error) {
      gaveUp = error instanceof LockNotAcquiredError ? error.reason : undefined;
      // A store that is slow releases what was taken in the background: the caller's time is up.
      await atMost(frame.leave(), entry.answerBy - this.#clock.monotonic());
      throw error;
    } finally {
      if (entry.waitedFor !== undefined) {
        this.#reporter.waited(entry.waitedFor, entry.by, entry.waitedMs, gaveUp);
      }
    }
    return frame;
  }

  async #enterOne(key: string, entry: Entry): Promise<Hold> {
    const { call, frame } = entry;
    const ticket = call.ticket === undefined ? undefined : readTicket(call.ticket, key);
    const inherited = call.reentry === 'context' ? this.#inherited(frame, key) : undefined;
    if (inherited && (!ticket || ticket.owner === inherited.owner)) {
      await this.#reenter(inherited, key, entry);
      return inherited;
    }
    if (this.#waiters.closed) {
      throw entry.refused(key, 'shutdown');
    }
    if (ticket) {
      const hold = new Hold(this.#holds, key, ticket.owner, entry.by, call.ttlMs, ticket.fence);
      await this.#contender.obtain(hold, entry);
      return hold;
    }
    const hold = new Hold(this.#holds, key, entry.owner, entry.by, call.ttlMs);
    const taken = this.#queue.lineOf(key);
    const line = taken ?? this.#queue.open(key);
    if (taken) {
      await this.#takeTurn(taken, hold, entry);
    }
    try {
      await this.#contender.obtain(hold, entry, line, taken !== undefined);
    } catch (error) {
      this.#queue.pass(key);
      throw error;
    }
    return hold;
  }

  /** The hold on the key of the nearest enclosing call of these locks; throws where that call's lock has ended. */
  #inherited(frame: LockFrame, key: string): Hold | undefined {
    for (let at = liveParent(frame); at; at = liveParent(at)) {
      const hold = at.holdOf(key);
      if (hold?.keeper === this.#holds) {
        const loss = at.loss() ?? at.doubt();
        if (loss) {
          throw loss;
        }
        return hold;
      }
    }
    return undefined;
  }

  async #reenter(hold: Hold, key: string, entry: Entry): Promise<void> {
    const { call, frame } = entry;
    if (hold.admits(frame)) {
      hold.enter(frame);
    } else {
      const outcome = await this.#waiters.waitFor({ hold }, key, entry, hold.lineFor(frame));
      if (outcome !== 'admitted') {
        throw entry.refused(key, outcome, hold);
      }
    }
    // A nested call asks for more with the next renewal, and never for less.
    hold.ttlMs = Math.max(hold.ttlMs, call.ttlMs);
    this.#reporter.reentered(hold, entry.by);
  }

  /** Becomes the one caller of this process that contends for the key. */
  async #takeTurn(line: Line, hold: Hold, entry: Entry): Promise<void> {
    const { key } = hold;
    const outcome = await this.#queueUp(line, hold, entry);
    if (outcome === 'timedOut' && line.failure) {
      // Nobody is known to hold the lock: the store is away.
      throw line.failure;
    }
    if (outcome !== 'admitted') {
      throw entry.refused(key, outcome, line.hold ?? line.busy);
    }
  }

  async #queueUp(line: Line, hold: Hold, entry: Entry): Promise<WaitOutcome> {
    const { call, frame } = entry;
    const { key } = hold;
    if (call.onUnavailable === 'throw' && this.#availability.isAway) {
      throw this.#availability.refusal(key);
    }
    if (call.waitMs > 0 && (line.waiting >= this.#maxPerKey || this.#waiters.isFull)) {
      throw entry.refused(key, 'tooManyWaiters', line.hold ?? line.busy);
    }
    this.#reporter.queued(hold, line.waiting);
    this.#longSections.watch();
    // Only a call that has a lock, its own or an enclosing one, can be waited for by the one that it waits for.
    return frame.parent || frame.holds.length > 0
      ? this.#waiters.waitFor(line, key, entry, line.behind(hold))
      : this.#waiters.wait(key, entry, entry.giveUpAt, line.behind(hold));
  }
}

/** One lock is not to be trusted any more when the next was had: all are held together, or none is. */
async function startOver(lost: Hold, { frame, obtained }: Entry): Promise<void> {
  if (!obtained.includes(lost)) {
    // It is an enclosing call's lock, and that call has to hear of it.
    throw lost.loss() ?? lost.doubt();
  }
  obtained.length = 0;
  await Promise.all(frame.holds.splice(0).map((hold) => hold.leave(frame)));
  frame.startOver();
}
