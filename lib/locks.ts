import { AbortableEntry } from './core/entering/abort.js';
import { Acquisition } from './core/entering/acquisition.js';
import { Availability } from './core/seam/availability.js';
import { BackgroundReleases } from './core/leases/background-releases.js';
import { BodyRun, Sections } from './core/entering/body-run.js';
import { refuse } from './core/calls/caller-stack.js';
import { countByName, permitsByName, type CallOptions } from './core/words/call-options.js';
import { describedCaller, holderIn, THIS_PROCESS } from './core/words/caller.js';
import type { Candidate } from './leader/candidate.js';
import { Candidates } from './leader/candidates.js';
import { type Clock, systemClock } from './core/seam/time.js';
import { type Describe, descriptionText } from './core/words/description.js';
import { Entrance, type EntryListener } from './core/entering/entrance.js';
import { LockConfigurationError, type LockError } from './core/words/errors.js';
import { Frame } from './core/entering/frame.js';
import type { LockHandle } from './core/entering/lock-handle.js';
import { NoPermit, type PermitHandle } from './core/entering/permit-handle.js';
import { HealthCheck } from './core/watching/health-check.js';
import { Outages } from './core/watching/outages.js';
import { Trials } from './core/watching/trials.js';
import type { LeaderBody } from './leader/leadership.js';
import { settle } from './core/leases/keeping.js';
import type { Lease } from './core/leases/lease.js';
import { Leases } from './core/leases/leases.js';
import { Lifecycle } from './core/seam/lifecycle.js';
import { Lines } from './core/leases/lines.js';
import type { LockHealth } from './core/words/lock-health.js';
import type { LockStore, Operator, StoredLock } from './core/seam/lock-store.js';
import type { Lock } from './core/words/lock.js';
import { Listing, type ListLimits, type LockList } from './operate/peers/lock-list.js';
import { DeadlockSearch } from './operate/peers/deadlock-search.js';
import { IncidentLog } from './operate/peers/incident-log.js';
import { Messenger } from './operate/peers/messenger.js';
import { Peers } from './operate/peers/peers.js';
import type { SurveyOptions } from './operate/peers/roll-call.js';
import type { Survey } from './operate/peers/survey.js';
import { Reporter } from './core/watching/reporter.js';
import type { ForcedBy, LockTrouble } from './core/words/lock-event.js';
import type { Body } from './core/calls/run-once.js';
import type { LockTelemetry } from './core/words/lock-telemetry.js';
import { Telemetry } from './core/watching/telemetry.js';
import { TimeLimits } from './core/seam/time-limits.js';
import { WrappedStore } from './core/seam/wrapped-store.js';
import { Transactions, type TransactionEnd } from './core/transactions/transactions.js';
import { Waiters, type MaxWaiters } from './core/entering/waiters.js';

/** The settings that the locks of one store need of their application. */
export interface LocksSettings {
  readonly name: string;
  readonly store: LockStore;
  readonly maxWaiters: MaxWaiters;
  readonly onTrouble: (trouble: LockTrouble) => void;
  readonly clock?: Clock;
  /** Writes a line of the debug log; undefined: there is none. */
  readonly debug?: ((line: string) => void) | undefined;
  /** Follow these locks; none where it is empty. */
  readonly telemetry?: readonly LockTelemetry[];
  /**
   * For how long a call that is inside a lock waits for another one before it searches for a deadlock, in milliseconds;
   * `Infinity`: never.
   */
  readonly deadlocksAfterMs?: number;
  /** Describes the running call; undefined: nothing is said of it. */
  readonly describe?: Describe | undefined;
  /** The end of the transaction around the running code; undefined: locks know of none. */
  readonly transaction?: TransactionEnd | undefined;
}

/** The functions that describe calls. The trace comes first, since it must not be cut off. */
function describesOf(telemetry: Telemetry | undefined, describe: Describe | undefined): readonly Describe[] {
  return [...(telemetry?.describes ?? []), ...(describe ? [describe] : [])];
}

function callsOf({ calls }: Waiters): CallOptions[] {
  return calls.map(({ call }) => call);
}

/**
 * The locks of one store of one application. A call flows one way: the entrance, the body, the release, the next in
 * line.
 */
export class Locks {
  readonly #name: string;
  readonly #store: LockStore;
  readonly #clock: Clock;
  readonly #lifecycle = new Lifecycle();
  readonly #reporter: Reporter;
  readonly #lines: Lines;
  readonly #waiters: Waiters;
  readonly #leases: Leases;
  readonly #entrance: Entrance;
  readonly #candidates: Candidates;
  readonly #health: HealthCheck;
  readonly #peers: Peers;
  /** Undefined where locks know of none. */
  readonly #transactions: Transactions | undefined;
  readonly #sections: Sections;
  readonly #describes: readonly Describe[];
  /** Undefined where nothing follows these locks. */
  readonly #endTelemetry: (() => void) | undefined;
  #ending: Promise<void> | undefined;

  /** Reports a handle that was collected before its release. */
  readonly #unreleased = (lease: Lease): void => this.#reporter.unreleased(lease);

  constructor(settings: LocksSettings) {
    const { name, maxWaiters, onTrouble, clock = systemClock, debug, deadlocksAfterMs = Infinity } = settings;
    const telemetry = settings.telemetry?.length ? new Telemetry(settings.telemetry) : undefined;
    const timed = telemetry?.measures ? new WrappedStore(settings.store, telemetry.timing(name, clock)) : settings.store;
    // A store that does not keep its limits, and whose leases end by time, gets time limits from core.
    const store = timed.expires && !timed.keepsLimits ? new WrappedStore(timed, new TimeLimits(clock).around) : timed;
    const lifecycle = this.#lifecycle;
    const availability = new Availability(clock);
    const incidents = new IncidentLog(clock, (lost, notice) => reporter.explained(lost, notice));
    const outages = new Outages(availability, clock);
    const reporter = new Reporter({ store: name, onTrouble, outages, telemetry, incidents, debug });
    const trials = new Trials({ store, lifecycle, reporter });
    const releases = new BackgroundReleases(store, clock, lifecycle);
    const lines = new Lines(store, clock, releases, lifecycle.closed);
    outages.onChange(
      () => {
        trials.begin();
        lines.holdBack();
      },
      () => lines.wake(),
    );
    const leases = new Leases({ name, store, clock, lifecycle, lines, releases, events: reporter });
    const messenger = new Messenger(store, lifecycle.closed);
    const deadlocks =
      deadlocksAfterMs < Infinity && store.messages && store.operator
        ? new DeadlockSearch({ clock, leases, lines, messenger, afterMs: deadlocksAfterMs, inspect: (key) => this.#stored(key) })
        : undefined;
    const waiters = new Waiters(clock, lifecycle, maxWaiters, deadlocks);
    this.#name = name;
    this.#store = store;
    this.#clock = clock;
    this.#reporter = reporter;
    this.#lines = lines;
    this.#waiters = waiters;
    this.#leases = leases;
    this.#entrance = new Entrance({ store, clock, lifecycle, lines, leases, releases, waiters, availability, events: reporter });
    this.#health = new HealthCheck({ clock, store, lifecycle, availability, reporter, leases, waiters });
    const { expires } = store;
    this.#peers = new Peers({ name, messenger, clock, expires, leases, waiters, deadlocks, incidents, health: () => this.health(0) });
    this.#transactions = settings.transaction && new Transactions(settings.transaction, (transaction) => settle(leases, transaction));
    this.#candidates = new Candidates({ run: (...call) => this.run(...call), clock, reporter });
    this.#sections = new Sections(telemetry);
    this.#describes = describesOf(telemetry, settings.describe);
    this.#endTelemetry = telemetry?.watch({
      store: name,
      maxWaiters: maxWaiters.perProcess,
      holds: (mode) => countByName(leases.running, mode),
      waiters: (mode) => countByName(callsOf(waiters), mode),
      permits: () => permitsByName([...leases.running, ...callsOf(waiters)]),
      health: () => this.health(0),
    });
  }

  /**
   * Runs `body` inside the lock on `keys`, which are checked and sorted, each once. `began` gets the frame of a call
   * that belongs to no transaction. Throws where the option `transaction` throws.
   */
  run<T>(keys: readonly string[], call: CallOptions, body: Body<T>, began?: (frame: Frame) => void): Promise<T> {
    const transaction = began ? undefined : this.#transactions?.current(call.caller.site);
    const frame = new Frame(this.#leases, keys, false, transaction, typeof call.shares === 'number');
    const acquisition = new Acquisition(this.#name, this.#describes.length > 0 ? this.#described(call) : call, frame, this.#clock);
    began?.(frame);
    const run = new BodyRun(acquisition, this.#reporter, this.#sections, body);
    this.#enter(acquisition, run);
    return run.outcome;
  }

  /** Enters the lock on behalf of a caller who leaves it by a handle: a permit, where the call wants one. */
  acquire(keys: readonly string[], call: CallOptions): Promise<LockHandle | PermitHandle> {
    const frame = new Frame(this.#leases, keys, true, this.#transactions?.current(call.caller.site), typeof call.shares === 'number');
    const acquisition = new Acquisition(this.#name, this.#describes.length > 0 ? this.#described(call) : call, frame, this.#clock);
    return new Promise((resolve) => {
      this.#enter(acquisition, { entered: () => resolve(frame.giveHandle(this.#unreleased)), refused: (error) => refuse(resolve, error) });
    });
  }

  /** Reports a call that runs without a permit, since the store is away, and makes the handle that its body gets. */
  without(key: string, call: CallOptions, error: LockError): Lock {
    this.#reporter.ranWithout({ ...call, key }, error);
    return new NoPermit(key) as unknown as Lock;
  }

  /** Has `body` run by one process of all, with the lock on `key`, which is checked. */
  lead(key: string, call: CallOptions, pauseMs: number, body: LeaderBody): Candidate {
    return this.#candidates.add(key, call, pauseMs, body);
  }

  /** Ends candidates that lead or stand by, before the shutdown. */
  async resign(): Promise<void> {
    await this.#candidates.stop();
  }

  /** The stored facts of a lock, and how many calls of this process wait for it. */
  async inspect(key: string): Promise<(StoredLock & { readonly waitingHere: number }) | null> {
    const stored = await this.#stored(key);
    return stored && { ...stored, by: holderIn(stored.by, stored.processes), waitingHere: this.#lines.lineOf(key)?.waiting ?? 0 };
  }

  /** `by` and `reason` are for the trail: events, logs and incidents. */
  async forceRelease(key: string, fence: number, { by, reason }: Pick<ForcedBy, 'by' | 'reason'> = {}): Promise<boolean> {
    const forcedBy = { by, reason, process: THIS_PROCESS };
    // Where the reply is lost, it is unknown whether the lock was released, so the notice is sent as well: it explains
    // a loss that happened, and changes nothing otherwise.
    let mayBeReleased = true;
    try {
      mayBeReleased = await this.#operator('forceRelease').forceRelease(key, fence);
      if (mayBeReleased) {
        this.#reporter.forced(key, fence, forcedBy);
      }
      return mayBeReleased;
    } finally {
      if (mayBeReleased) {
        this.#peers.tellForced({ key, fence, ...forcedBy });
      }
    }
  }

  /**
   * The present health of the locks. A store that does not answer, or grants nothing, is down after `downAfterMs`.
   * Never rejects.
   */
  health(downAfterMs: number): Promise<LockHealth> {
    return this.#health.run(downAfterMs);
  }

  /**
   * Collects the answers of all processes that use the store: the locks that they hold, and the calls that wait there.
   */
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

  /**
   * Rejects waiters and new calls, and ends running calls. Leaders go first: their code may use locks until it has
   * ended.
   */
  shutdown(): Promise<void> {
    const resigned = this.#candidates.stop();
    return (this.#ending ??= resigned ? resigned.then(() => this.#close()) : this.#close());
  }

  #close(): Promise<void> {
    // First: the store is closed as soon as all is released.
    this.#peers.leave();
    return this.#lifecycle
      .close(() => {
        this.#waiters.endAll();
        return this.#leases.shutdown();
      })
      .finally(this.#endTelemetry);
  }

  #enter(acquisition: Acquisition, listener: EntryListener): void {
    const { signal } = acquisition.call;
    this.#entrance.enter(acquisition, signal ? new AbortableEntry(acquisition, signal, listener) : listener);
  }

  /** A candidate is no call of a request. */
  #described(call: CallOptions): CallOptions {
    const text = call.caller.leads ? '' : descriptionText(this.#describes);
    return text === '' ? call : { ...call, caller: describedCaller(call.caller, text) };
  }

  #stored(key: string): Promise<StoredLock | null> {
    return this.#operator('inspect').inspect(key);
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
}
