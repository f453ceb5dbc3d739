import { unlessAborted } from './abort.js';
import { Acquisition } from './acquisition.js';
import { atMost } from './at-most.js';
import { Availability } from './availability.js';
import { BackgroundReleases } from './background-releases.js';
import { BodyRun } from './body-run.js';
import type { Call } from './call.js';
import type { CallNode } from './call-tree.js';
import type { Candidate } from './candidate.js';
import { Candidates } from './candidates.js';
import { systemClock, type Clock } from './clock.js';
import { Contender } from './contender.js';
import { EnteredTickets } from './entered-tickets.js';
import { LockConfigurationError } from './errors.js';
import { Frame } from './frame.js';
import { Guests } from './guests.js';
import { Handles } from './handles.js';
import { HealthCheck } from './health-check.js';
import { Lease } from './lease.js';
import { ttlUntil } from './lease-time.js';
import type { LeaderBody } from './leadership.js';
import { Leases } from './leases.js';
import { Lifecycle } from './lifecycle.js';
import type { Line } from './line.js';
import { Lines } from './lines.js';
import type { LockHealth } from './lock-health.js';
import type { LockStore, Operator, StoredLock } from './lock-store.js';
import type { Lock } from './lock.js';
import { LongSections } from './long-sections.js';
import { Owner } from './owner.js';
import { Listing, type ListLimits, type LockList } from './peers/lock-list.js';
import { DeadlockSearch } from './peers/deadlock-search.js';
import { Messenger } from './peers/messenger.js';
import { Peers } from './peers/peers.js';
import type { SurveyOptions } from './peers/roll-call.js';
import type { Survey } from './peers/survey.js';
import { Reporter, type LockTrouble } from './reporter.js';
import { runOnce } from './run-once.js';
import { Section } from './section.js';
import { Telemetry, type LockTelemetry } from './telemetry.js';
import { TimedStore } from './timed-store.js';
import { readTicket, type TicketEntry } from './ticket.js';
import { isHoldTraced, traceHold } from './traced-hold.js';
import { TimeLimits } from './time-limits.js';
import type { Transaction } from './transaction.js';
import { Transactions, type TransactionEnd } from './transactions.js';
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
  /** What follows these locks; empty for nothing. */
  readonly telemetry?: readonly LockTelemetry[];
  /** For how long a call that is inside a lock waits for another one before it looks for a deadlock, in milliseconds; `Infinity`: never. */
  readonly deadlocksAfterMs?: number;
  /** The end of the transaction around the running code; undefined: locks know of none. */
  readonly transaction?: TransactionEnd | undefined;
}

/**
 * The locks of one store of one application. A call flows one way: re-entry, the line of its key, the store, the body,
 * the release, the next in line.
 */
export class Locks {
  readonly #name: string;
  readonly #store: LockStore;
  readonly #clock: Clock;
  readonly #maxPerKey: number;
  readonly #lifecycle = new Lifecycle();
  readonly #limits: TimeLimits;
  readonly #reporter: Reporter;
  readonly #lines: Lines;
  readonly #waiters: Waiters;
  readonly #leases: Leases;
  readonly #contender: Contender;
  readonly #availability: Availability;
  readonly #longSections: LongSections;
  readonly #handles: Handles;
  readonly #candidates: Candidates;
  readonly #guests = new Guests();
  readonly #health: HealthCheck;
  readonly #peers: Peers;
  /** Undefined where locks know of none. */
  readonly #transactions: Transactions | undefined;
  /** Undefined where nothing follows these locks. */
  readonly #telemetry: Telemetry | undefined;
  readonly #endTelemetry: (() => void) | undefined;
  #ending: Promise<void> | undefined;

  constructor(settings: LocksSettings) {
    const { name, maxWaiters, onTrouble, clock = systemClock, debug, deadlocksAfterMs = Infinity } = settings;
    const telemetry = settings.telemetry?.length ? new Telemetry(settings.telemetry) : undefined;
    const store = telemetry?.measures ? new TimedStore(settings.store, name, telemetry, clock) : settings.store;
    const lifecycle = this.#lifecycle;
    const limits = new TimeLimits(clock, store.expires);
    const availability = new Availability(clock);
    const reporter = new Reporter({ store: name, onTrouble, availability, telemetry, debug });
    const releases = new BackgroundReleases(store, clock, limits, lifecycle);
    const lines = new Lines(store, clock, limits, releases);
    const leases = new Leases({ name, store, clock, limits, lifecycle, lines, releases, reporter });
    const messenger = new Messenger(settings.store, limits);
    const deadlocks =
      deadlocksAfterMs < Infinity && settings.store.messages && settings.store.operator
        ? new DeadlockSearch({ clock, leases, lines, messenger, afterMs: deadlocksAfterMs, inspect: (key) => this.#stored(key) })
        : undefined;
    const waiters = new Waiters(clock, lifecycle, maxWaiters.perProcess, deadlocks);
    this.#name = name;
    this.#store = store;
    this.#clock = clock;
    this.#maxPerKey = maxWaiters.perKey;
    this.#limits = limits;
    this.#availability = availability;
    this.#reporter = reporter;
    this.#lines = lines;
    this.#waiters = waiters;
    this.#leases = leases;
    this.#contender = new Contender({ store, clock, limits, lifecycle, lines, leases, releases, waiters, reporter, availability });
    this.#health = new HealthCheck({ store: settings.store, limits, availability, reporter, leases, waiters });
    this.#peers = new Peers({ name, messenger, clock, expires: store.expires, leases, waiters, deadlocks, health: () => this.health(0) });
    this.#longSections = new LongSections(lines, clock, reporter);
    this.#transactions = settings.transaction && new Transactions(settings.transaction, (transaction) => leases.settle(transaction));
    this.#handles = new Handles((frame) => this.#reportUnreleased(frame));
    this.#candidates = new Candidates({ run: (...call) => this.run(...call), clock, reporter });
    this.#telemetry = telemetry;
    this.#endTelemetry = telemetry?.watch({
      store: name,
      maxWaiters: maxWaiters.perProcess,
      holds: () => leases.countByName(),
      waiters: () => waiters.countByName(),
      health: () => this.health(0),
    });
  }

  /**
   * Runs `body` inside the lock on `keys`, which are checked and sorted, each once. `began` gets the frame of a call that belongs to no
   * transaction.
   */
  async run<T>(keys: readonly string[], call: Call, body: (lock: Lock) => T | PromiseLike<T>, began?: (frame: Frame) => void): Promise<T> {
    const ownFrame = new Frame(this.#leases, keys, false, began ? undefined : this.#transactions?.current());
    const acquisition = new Acquisition(this.#name, call, ownFrame, this.#clock);
    began?.(ownFrame);
    const frame = await unlessAborted(this.#enterAll(acquisition), acquisition);
    // A re-entry is no section of its own, and a leader's would last for days.
    const isFollowed = (this.#telemetry || isHoldTraced()) && acquisition.obtained.length > 0 && !call.caller.leads;
    return new BodyRun(frame, this.#leases).run(isFollowed ? (lock) => this.#runFollowed(lock, acquisition, body) : body);
  }

  /** Enters the lock on behalf of a caller who leaves it by a handle. */
  async acquire(keys: readonly string[], call: Call): Promise<Lock> {
    const frame = new Frame(this.#leases, keys, true, this.#transactions?.current());
    const acquisition = new Acquisition(this.#name, call, frame, this.#clock);
    return this.#handles.give(await unlessAborted(this.#enterAll(acquisition), acquisition));
  }

  /** Has `body` run by one process of all, with the lock on `key`, which is checked. */
  lead(key: string, call: Call, pauseMs: number, body: LeaderBody): Candidate {
    return this.#candidates.add(key, call, pauseMs, body);
  }

  /** Ends what leads or stands by, before the shutdown. */
  async resign(): Promise<void> {
    await this.#candidates.stop();
  }

  /** What is stored of a lock, and how many calls of this process wait for it. */
  async inspect(key: string): Promise<(StoredLock & { readonly waitingHere: number }) | null> {
    const stored = await this.#stored(key);
    return stored && { ...stored, waitingHere: this.#lines.lineOf(key)?.waiting ?? 0 };
  }

  async forceRelease(key: string, fence: number): Promise<boolean> {
    const isReleased = await this.#limits.bound(this.#operator('forceRelease').forceRelease(key, fence), key);
    if (isReleased) {
      this.#reporter.forced(key, fence);
    }
    return isReleased;
  }

  /** How the locks are now. A store that does not answer is down after `downAfterMs`. Never rejects. */
  health(downAfterMs: number): Promise<LockHealth> {
    return this.#health.run(downAfterMs);
  }

  /** What all processes say that use the store: what they hold, and what waits there. */
  survey(options: SurveyOptions): Promise<Survey> {
    return this.#peers.survey(options);
  }

  /** The locks of all processes. */
  list(limits: ListLimits): LockList {
    return new Listing(() => this.survey({}), this.#store.operator, this.#clock, limits);
  }

  /** Keeps the calls that end from now on, for surveys. */
  record(): void {
    this.#reporter.recordsBy(this.#peers.record());
  }

  /** Rejects waiters and new calls, and ends what runs. Leaders go first: their code may use locks until it has ended. */
  shutdown(): Promise<void> {
    const resigned = this.#candidates.stop();
    return (this.#ending ??= resigned ? resigned.then(() => this.#close()) : this.#close());
  }

  #close(): Promise<void> {
    return this.#lifecycle
      .close(() => {
        this.#waiters.endAll();
        return this.#leases.shutdown();
      })
      .finally(this.#endTelemetry);
  }

  /** Runs the body as a section that telemetry, or a tracer, follows. */
  #runFollowed<T>(lock: Lock, acquisition: Acquisition<Frame>, body: (lock: Lock) => T | PromiseLike<T>): T | Promise<T> {
    const section = new Section(acquisition, lock);
    const telemetry = this.#telemetry;
    const run = (): T | Promise<T> => traceHold(section, () => runOnce(body, lock));
    if (!telemetry) {
      return run();
    }
    acquisition.frame.resumesBy((later) => telemetry.resume(section, later));
    return telemetry.section(section, run);
  }

  async #enterAll(acquisition: Acquisition<Frame>): Promise<Frame> {
    const { frame, call } = acquisition;
    const [first] = frame.keys as readonly [string];
    let refusal: unknown;
    try {
      this.#refuseTooLong(first, call);
      if (frame.transaction?.loss) {
        // Nobody else can tell the transaction, which may still roll back.
        throw frame.transaction.loss;
      }
      if (call.signal?.aborted) {
        throw acquisition.refused(first, 'aborted');
      }
      for (let at = 0; at < frame.keys.length; at++) {
        frame.take(await this.#enterOne(frame.keys[at] as string, acquisition));
        this.#waiters.isOver(acquisition);
        const lost = at > 0 ? frame.taken.find((lease) => !lease.isLive) : undefined;
        if (lost) {
          await this.#startOver(lost, acquisition);
          at = -1;
        }
      }
      this.#leases.limit(acquisition);
      frame.entered(acquisition.waitedMs);
    } catch (error) {
      refusal = error;
      // A store that is slow releases what was taken in the background: the caller's time is up.
      await atMost(frame.leave(), acquisition.answerBy - this.#clock.monotonic());
      throw error;
    } finally {
      this.#waiters.isOver(acquisition);
      frame.transaction?.hasEntered(frame);
      acquisition.ended(refusal);
      this.#reporter.ended(acquisition, refusal);
    }
    return frame;
  }

  async #enterOne(key: string, acquisition: Acquisition<Frame>): Promise<Lease> {
    const { call, frame } = acquisition;
    const { ttlMs, renew: renews, caller } = call;
    const ticket = call.ticket === undefined ? undefined : readTicket(call.ticket, key);
    let inherited = call.reentry === 'context' ? this.#inherited(frame, key) : undefined;
    if (!inherited && frame.transaction) {
      inherited = await this.#besideOthers(frame.transaction, key, acquisition);
    }
    if (inherited instanceof Lease && (!ticket || isOf(ticket, inherited))) {
      await this.#reenter(inherited, acquisition);
      return inherited;
    }
    if (this.#lifecycle.isClosing) {
      throw acquisition.refused(key, 'shutdown');
    }
    if (ticket) {
      const [joined, isIn] = this.#join(ticket, acquisition);
      await isIn;
      return joined;
    }
    if (inherited && !(inherited instanceof Lease)) {
      return this.#guests.enter(inherited, {
        leftMs: () => acquisition.giveUpAt - this.#clock.monotonic(),
        reenter: (joined) => this.#reenter(joined, acquisition),
        join: () => this.#join(inherited, acquisition),
      });
    }
    const lease = new Lease(this.#clock, { key, owner: acquisition.newOwner(), caller, ttlMs, renews });
    const taken = this.#lines.lineOf(key);
    const line = taken ?? this.#lines.open(key);
    if (taken) {
      await this.#becomeContender(taken, lease, acquisition);
    }
    try {
      await this.#contender.obtain(lease, acquisition, line, taken !== undefined);
    } catch (error) {
      this.#lines.endTurn(key);
      throw error;
    }
    return lease;
  }

  /** Asks the store to let a call into the lock of a ticket. */
  #join(ticket: TicketEntry, acquisition: Acquisition<Frame>): readonly [Lease, Promise<void>] {
    const { ttlMs, renew: renews, caller } = acquisition.call;
    const { key, secret } = ticket;
    this.#refuseTickets(key);
    const joined = new Lease(this.#clock, { key, owner: new Owner(secret), caller, ttlMs, renews, joined: ticket });
    return [joined, this.#contender.obtain(joined, acquisition)];
  }

  /**
   * The lease on the key of the nearest enclosing call of these locks, or of an ended call of its transaction; or the ticket of a call
   * that came with tickets. Throws where that lock has ended.
   */
  #inherited(frame: Frame, key: string): Lease | TicketEntry | undefined {
    for (let at: CallNode | undefined = frame; at; at = at.parent) {
      if (at instanceof EnteredTickets) {
        const entry = at.entryFor(this.#name, key);
        if (entry) {
          return entry;
        }
      }
      if (!(at instanceof Frame) || !at.belongsTo(this.#leases)) {
        continue;
      }
      const lease = at.leaseOn(key);
      if (lease) {
        at.assertHeld();
        return lease;
      }
      const kept = at.transaction?.kept.get(key);
      if (kept) {
        const why = this.#leases.expire(kept) ?? kept.doubt;
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
      const outcome = await this.#waiters.wait(key, acquisition, giveUpAt, line);
      if (outcome !== 'admitted') {
        throw acquisition.refused(key, outcome, this.#lines.lineOf(key)?.holder);
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
      const outcome = await this.#waiters.waitFor({ lease }, key, acquisition, calls.lineFor(frame));
      if (outcome !== 'admitted') {
        throw acquisition.refused(key, outcome, lease);
      }
    }
    lease.raise(acquisition.call.ttlMs);
    this.#reporter.reentered(lease, acquisition.call.caller);
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
    const { call } = acquisition;
    const { key } = lease;
    if (call.onUnavailable === 'throw' && this.#availability.isAway) {
      throw this.#availability.refusal(key);
    }
    if (call.waitMs > 0 && (line.waiting >= this.#maxPerKey || this.#waiters.isFull)) {
      throw acquisition.refused(key, 'tooManyWaiters', line.holder);
    }
    this.#reporter.queued(lease, line.waiting);
    this.#longSections.watch();
    // Only a call that has a lock, its own or an enclosing one, can be waited for by the one that it waits for.
    const outcome = await (acquisition.isNested
      ? this.#waiters.waitFor(line, key, acquisition, line.behind(lease))
      : this.#waiters.wait(key, acquisition, acquisition.giveUpAt, line.behind(lease)));
    acquisition.sees(line.lastHolder);
    return outcome;
  }

  /** One lock cannot be trusted any more when the next was granted: all are held together, or none is. */
  async #startOver(lost: Lease, acquisition: Acquisition<Frame>): Promise<void> {
    if (!acquisition.obtained.includes(lost)) {
      // It is an enclosing call's lock, and that call has to be notified.
      throw this.#leases.expire(lost) ?? lost.doubt;
    }
    acquisition.startOver();
    await acquisition.frame.startOver();
  }

  /** A nested call raises the lease of the lock that it is in, and `minHold` asks for one that covers it. */
  #refuseTooLong(key: string, { ttlMs, minHoldMs }: Call): void {
    const { longestLeaseMs } = this.#store;
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
    if (!this.#store.tickets) {
      throw new LockConfigurationError(
        `Lock "${key}": the store '${this.#name}' does not let calls enter by a ticket. Use a store with the capability 'tickets', or leave the ticket out.`,
        key,
      );
    }
  }

  #stored(key: string): Promise<StoredLock | null> {
    return this.#limits.bound(this.#operator('inspect').inspect(key), key);
  }

  #operator(method: string): Operator {
    const { operator } = this.#store;
    if (!operator) {
      throw new LockConfigurationError(
        `LockService.${method}() is not offered by the store '${this.#name}'. Use a store with the capability 'operator'.`,
      );
    }
    return operator;
  }

  #reportUnreleased(frame: Frame): void {
    for (const lease of frame.taken) {
      this.#reporter.unreleased(lease, this.#leases.heldMs(lease));
    }
  }
}

function isOf({ secret }: TicketEntry, { owner }: Lease): boolean {
  return new Owner(secret).id === owner.id;
}
