import type { HoldMode } from '../../core/words/call-options.js';
import type { Cycle } from '../../core/words/cycle-call.js';
import type { LostReason } from '../../core/words/errors.js';

/** One metric, in the words of OpenTelemetry. */
export interface Metric {
  readonly name: string;
  /** As UCUM writes it: `s`, `1`, or the counted things, in braces. */
  readonly unit: string;
  readonly description: string;
  readonly labels: readonly Label[];
}

/** A metric that shows how values are spread. */
export interface HistogramMetric extends Metric {
  /** The upper bounds of the histogram's buckets. */
  readonly buckets: readonly number[];
}

/** A counter. Its series begin at 0 with the first event of a name, so that its first count is an increase. */
export interface CounterMetric extends Metric {
  /** The labels of each series besides the name and the store; undefined where there is one series. */
  readonly each?: readonly Labels[];
  /** The mode of the calls that it counts; undefined for those of each. */
  readonly mode?: HoldMode;
}

export type Label =
  | 'distributed_lock.name'
  | 'distributed_lock.store'
  | 'distributed_lock.mode'
  | 'distributed_lock.contended'
  | 'distributed_lock.outcome'
  | 'distributed_lock.scope'
  | 'distributed_lock.operation'
  | 'distributed_lock.member'
  | 'error.type';

const NAME = 'distributed_lock.name';
const STORE = 'distributed_lock.store';
/** The labels of a kind of call. */
const OF_CALLS = [NAME, STORE, 'distributed_lock.mode'] as const;

/** Seconds. */
const WAITS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const HOLDS = [...WAITS, 60, 300];
/** Parts of a lease. */
const MARGINS = [0, 0.05, 0.1, 0.2, 0.33, 0.5, 0.66];

export const HISTOGRAMS = {
  acquireDuration: {
    name: 'distributed_lock.acquire.duration',
    unit: 's',
    description: 'How long calls took to get a lock, or to be refused.',
    labels: [...OF_CALLS, 'error.type', 'distributed_lock.contended', 'distributed_lock.outcome'],
    buckets: WAITS,
  },
  holdDuration: {
    name: 'distributed_lock.hold.duration',
    unit: 's',
    description: 'How long locks were held.',
    labels: [...OF_CALLS, 'error.type'],
    buckets: HOLDS,
  },
  leaseMargin: {
    name: 'distributed_lock.lease.margin',
    unit: '1',
    description: 'The part of a lease that was left when it was renewed.',
    labels: OF_CALLS,
    buckets: MARGINS,
  },
  operationDuration: {
    name: 'distributed_lock.store.operation.duration',
    unit: 's',
    description: 'How long the store took to answer.',
    labels: [STORE, 'distributed_lock.operation', 'error.type'],
    buckets: WAITS,
  },
} as const satisfies Record<string, HistogramMetric>;

export const COUNTERS = {
  losses: {
    name: 'distributed_lock.losses',
    unit: '{loss}',
    description: 'Leases that ended before the code did.',
    labels: [...OF_CALLS, 'error.type'],
    each: (['expired', 'forced', 'released', 'maxHold', 'shutdown'] satisfies LostReason[]).map((reason) => ({ 'error.type': reason })),
  },
  releaseFailures: {
    name: 'distributed_lock.release.failures',
    unit: '{release}',
    description: 'Releases that the store did not answer.',
    labels: OF_CALLS,
  },
  deadlocks: {
    name: 'distributed_lock.deadlocks',
    unit: '{deadlock}',
    description: 'Calls that were refused since they would have waited for each other.',
    labels: [...OF_CALLS, 'distributed_lock.scope'],
    each: (['process', 'fleet'] satisfies Cycle['scope'][]).map((scope) => ({ 'distributed_lock.scope': scope })),
  },
  forceReleases: {
    name: 'distributed_lock.force_releases',
    unit: '{release}',
    description: 'Locks that this process released by force.',
    labels: OF_CALLS,
  },
  runsWithout: {
    name: 'distributed_lock.runs_without_permit',
    unit: '{call}',
    description: 'Calls that ran without a permit, since the store was away.',
    labels: OF_CALLS,
    mode: 'permit',
  },
} as const satisfies Record<string, CounterMetric>;

/** How many there are now. Read when metrics are collected. The sum over processes is the value of the application. */
export const LEVELS = {
  holds: {
    name: 'distributed_lock.hold.active',
    unit: '{hold}',
    description: 'Locks that this process holds now.',
    labels: OF_CALLS,
  },
  waiters: {
    name: 'distributed_lock.waiter.active',
    unit: '{call}',
    description: 'Calls of this process that wait now.',
    labels: OF_CALLS,
  },
  waiterLimit: {
    name: 'distributed_lock.waiter.limit',
    unit: '{call}',
    description: 'How many calls of this process may wait.',
    labels: [STORE],
  },
} as const satisfies Record<string, Metric>;

/** How many there may be. Read when metrics are collected. The least over processes is the value of the application. */
export const LIMITS = {
  permits: {
    name: 'distributed_lock.permit.limit',
    unit: '{permit}',
    description: 'How many permits there are in all, of the semaphore that has the fewest.',
    labels: [NAME, STORE],
  },
} as const satisfies Record<string, Metric>;

/** 1 where it is so, and 0 where it is not. The stores are asked when metrics are collected. */
export const STATES = {
  up: {
    name: 'distributed_lock.store.up',
    unit: '1',
    description: 'Whether the store answers, and grants locks.',
    labels: [STORE],
  },
  hearing: {
    name: 'distributed_lock.store.hearing',
    unit: '1',
    description: 'Whether messages of turns arrive, so that waiting calls need not poll.',
    labels: [STORE],
  },
  memberVoting: {
    name: 'distributed_lock.store.member.voting',
    unit: '1',
    description: 'Whether a server of a quorum has a vote that counts.',
    labels: [STORE, 'distributed_lock.member'],
  },
} as const satisfies Record<string, Metric>;

/** The labels of a value. */
export type Labels = Readonly<Partial<Record<Label, string | boolean>>>;

/** The value of a gauge for some labels. */
export interface Reading {
  readonly labels: Labels;
  readonly value: number;
}

/** Takes a value. `traceId` names the trace of the call that it is of, as its exemplar. */
export type Measure = (value: number, labels: Labels, traceId?: string) => void;

/** Makes the metrics of a backend. */
export interface Instruments {
  histogram(metric: HistogramMetric): Measure;
  counter(metric: Metric): Measure;
  /** A figure that is summed over processes. `read` is called whenever metrics are collected. */
  level(metric: Metric, read: () => Iterable<Reading>): void;
  /** A figure that is not summed. `read` never rejects. */
  state(metric: Metric, read: () => Promise<Iterable<Reading>>): void;
}
