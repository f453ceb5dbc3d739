import { MOST_FENCES } from '../../lib/core/seam/lock-store.js';
import { beyond, everAway, type Away } from './away.js';
import type { HistoryEvent } from './event.js';
import { lockedRowsOf, type FaultName } from './faults.js';
import type { Entry } from './entry.js';
import { baseOf } from './fleet.js';
import type { Interval } from './interval.js';

/** A fault of a run, as it happened. */
export interface Struck extends Away {
  readonly fault: FaultName;
  readonly target: string;
  /** The lock that it took away, where it was one; undefined for all, and where nobody knows. */
  readonly fence: number | undefined;
  /** `failed` where it may not have happened, `nothing` where it found no lock to take. */
  readonly outcome: 'struck' | 'failed' | 'nothing';
}

/** How long a process takes to be itself after a fault: to connect, subscribe and be answered, in milliseconds. */
const RECOVERY_MS = 500;
/**
 * How long a process takes to be itself after a pause of its event loop, in which no connection was lost, in
 * milliseconds.
 */
const STALLED_MS = 200;

/** Take locks away behind their holders' backs. */
const TAKING: ReadonlySet<FaultName> = new Set(['delete', 'erase', 'force', 'flush', 'restart']);
/** Keep a process from the servers, or from running. A subscription that is silent does not. */
const HINDERING: ReadonlySet<FaultName> = new Set([
  'pause', 'crash', 'block', 'cut', 'killOnReply', 'killOnRelease', 'dropReplies', 'blackhole', 'refuse', 'latency',
  'sleep', 'stall', 'restart', 'killClients', 'failover', 'depose', 'isolate', 'outage', 'forget', 'snapshot', 'rebirth', 'recover',
  'standby', 'readOnly',
]); // prettier-ignore

/** Keep a process from running. One that slept does not know it before its network is back. */
const STOPPING: ReadonlySet<FaultName> = new Set(['pause', 'block', 'sleep']);
/** Keep a process from hearing of its turn, and from nothing else. */
const SILENCING: ReadonlySet<FaultName> = new Set(['mute', 'deafen']);
/** Make servers refuse what they would answer else, also some time later. */
const FAILING: ReadonlySet<FaultName> = new Set(['failover', 'depose', 'isolate', 'reshard']);
/** How long it takes until all are agreed again who is a master, in milliseconds. */
const FAILOVER_MS = 5_000;

/** A process, and the keys that it is about. */
type Caller = Pick<Entry, 'process' | 'keys'>;

/** The faults of the nemesis and the stalls of the processes, to ask which of them can be blamed. */
export class Faults {
  readonly all: readonly Struck[];
  /** Faults of the plan that did not strike, because the one before was not over. */
  readonly leftOut: readonly FaultName[];
  /** How many servers may be away at once with nobody hindered. */
  readonly #spare: number;
  /** Servers that were slow to answer, whether or not something struck them. */
  readonly #slow: readonly Away[];
  readonly #stalls: readonly (Interval & { readonly process: string })[];
  readonly #sleeps: readonly (Interval & { readonly process: string })[];
  /** When each process was killed that was. */
  readonly #deaths = new Map<string, number>();
  readonly #hindering = new Map<string, readonly Interval[]>();
  readonly #denying = new Map<string, readonly Interval[]>();
  readonly #taking = new Map<string, readonly Struck[]>();

  constructor(history: readonly HistoryEvent[], spare = 0) {
    this.#spare = spare;
    this.all = struckOf(history);
    this.leftOut = history.flatMap(({ op, fault }) => (op === 'skip' ? [fault as FaultName] : []));
    this.#stalls = history.filter(({ op, servers }) => op === 'stall' && servers === undefined).map(ofProcess);
    this.#sleeps = history.filter(({ op }) => op === 'slept').map(ofProcess);
    this.#slow = history
      .filter(({ op, servers }) => op === 'stall' && servers !== undefined)
      .map(({ servers, since = 0, t }) => ({ servers, from: since, to: t + STALLED_MS }));
    const crashes = new Map<string, number>();
    for (const { target, from } of this.all.filter(({ fault }) => fault === 'crash')) {
      crashes.set(target, (crashes.get(target) ?? 0) + 1);
      this.#deaths.set(`${target}.${crashes.get(target)}`, from);
    }
  }

  /**
   * The faults that took the lock of a key away from the holder that had it at that fence, or at an earlier one of the
   * same block; for a permit, which has no fence, all that took something.
   */
  taking(key: string, fence: number | undefined): readonly Struck[] {
    const known = this.#taking.get(key) ?? this.#findTaking(key);
    this.#taking.set(key, known);
    return known.filter((struck) => struck.fence === undefined || fence === undefined || isInBlockOf(struck.fence, fence));
  }

  /** When a process was kept from its work, with the time to recover. */
  hindering({ process, keys }: Caller): readonly Interval[] {
    const base = baseOf(process);
    const known = this.#hindering.get(base) ?? beyond(this.#spare, this.#keepingAway(base));
    this.#hindering.set(base, known);
    return [...known, ...this.#locking(keys)];
  }

  /**
   * When a process could have no grant, with the time to recover: it was hindered, or the servers had no memory left.
   */
  denying({ process, keys }: Caller): readonly Interval[] {
    const base = baseOf(process);
    const known = this.#denying.get(base) ?? beyond(this.#spare, this.#keepingFromGrants(base));
    this.#denying.set(base, known);
    return [...known, ...this.#locking(keys)];
  }

  /**
   * Whether so many servers were kept from a process, at once or in turn, that a grant may have ended that had
   * `missing` votes too few.
   */
  missedVotes(process: string, { from, to }: Interval, missing: number): boolean {
    return this.#spare > 0 && everAway({ from, to }, this.#keepingFromGrants(baseOf(process))) > this.#spare - missing;
  }

  /** How many votes a grant may lack. */
  get spare(): number {
    return this.#spare;
  }

  /** When a process may not have heard of its turn, with the time to recover. */
  silencing(process: string): readonly Interval[] {
    return this.all
      .filter(({ fault, target }) => SILENCING.has(fault) && target === baseOf(process))
      .flatMap((struck) => (struck.fault === 'deafen' ? ends(struck) : [recovered(struck)]));
  }

  /** The faults that may make the servers refuse a process, or not answer it, for as long as a failover takes. */
  failing(caller: Caller): readonly Interval[] {
    const others = this.all.filter(({ fault }) => FAILING.has(fault)).map(({ from, to }) => ({ from, to: to + FAILOVER_MS }));
    return [...this.denying(caller), ...others, ...this.#leaps(baseOf(caller.process))];
  }

  /**
   * When the wall clock of a process leapt: a grant that is on its way then is not trusted, and a call that does not
   * wait fails.
   */
  #leaps(process: string): readonly Interval[] {
    return this.all.filter(({ fault, target }) => fault === 'wall' && target === process).flatMap(ends);
  }

  /** When the event loop of a process stood still. */
  stopping(process: string): readonly Interval[] {
    const base = baseOf(process);
    const struck = this.all.filter(({ fault, target }) => STOPPING.has(fault) && target === base);
    return [...struck, ...this.#stalls.filter((stall) => stall.process === base)];
  }

  /** For how long a machine slept meanwhile, which its monotonic clock does not count. */
  sleptMs(process: string, { from, to }: Interval): number {
    const slept = this.#sleeps.filter((sleep) => sleep.process === baseOf(process) && sleep.to > from && sleep.from < to);
    return slept.reduce((ms, sleep) => ms + sleep.to - sleep.from, 0);
  }

  /**
   * When a process was killed; `Infinity` where it never was. The first of a worker's processes dies in its first
   * crash.
   */
  deathOf(process: string): number {
    return this.#deaths.get(process) ?? Infinity;
  }

  #findTaking(key: string): readonly Struck[] {
    return this.all.filter(
      ({ fault, target, outcome }) => TAKING.has(fault) && outcome !== 'nothing' && (target === 'servers' || target === key),
    );
  }

  /** When one of these keys had a row that somebody else had locked. */
  #locking(keys: readonly string[]): readonly Interval[] {
    return this.all
      .filter(({ fault, target }) => fault === 'lockRow' && lockedRowsOf(target).some((key) => keys.includes(key)))
      .map(recovered);
  }

  #keepingFromGrants(base: string): readonly Away[] {
    return [...this.#keepingAway(base), ...this.all.filter(({ fault }) => fault === 'full').map(recovered)];
  }

  #keepingAway(base: string): readonly Away[] {
    const struck = this.all.filter(({ fault, target }) => HINDERING.has(fault) && (target === 'servers' || target === base));
    const stalls = this.#stalls.filter((stall) => stall.process === base);
    return [...struck.map(recovered), ...this.#slow, ...stalls.map(({ from, to }) => ({ from, to: to + STALLED_MS }))];
  }
}

/** A process knows that it has no subscription, and polls by itself: it can lose its place when that begins or ends. */
function ends({ from, to }: Interval): Interval[] {
  return [recovered({ from, to: from }), recovered({ from: to, to })];
}

function recovered<Time extends Interval>(time: Time): Time {
  return { ...time, to: time.to + RECOVERY_MS };
}

function ofProcess({ process, since = 0, t }: HistoryEvent): Interval & { readonly process: string } {
  return { process: baseOf(process), from: since, to: t };
}

function struckOf(history: readonly HistoryEvent[]): Struck[] {
  const open = new Map<string, { from: number; servers: Away['servers']; outcome: Struck['outcome'] }>();
  const all: Struck[] = [];
  for (const { op, phase, fault, target = '', step, servers, fence, outcome, t } of history) {
    if (fault === undefined || op === 'skip') {
      continue;
    }
    const name = `${fault} ${target} ${step ?? ''}`;
    const begun = open.get(name);
    if (op === 'start' && phase === 'info') {
      open.set(name, { from: t, servers, outcome: 'struck' });
    } else if (begun && phase === 'fail') {
      begun.outcome = 'failed';
    } else if (begun) {
      open.delete(name);
      all.push({ fault: fault as FaultName, target, to: t, fence, ...begun, ...(outcome === 'nothing' && { outcome }) });
    }
  }
  return all;
}

/** Whether a call at that fence may have had the lock that the store granted at `storedFence`. */
function isInBlockOf(storedFence: number, fence: number): boolean {
  return storedFence <= fence && fence < storedFence + MOST_FENCES;
}
