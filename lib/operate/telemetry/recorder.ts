import type { HoldMode } from '../../core/words/call-options.js';
import { traceIn } from '../../core/words/description.js';
import type { LockEvent } from '../../core/words/lock-event.js';
import type { LockHealth } from '../../core/words/lock-health.js';
import type { LockSource, LockTelemetry, MeasuredOperation } from '../../core/words/lock-telemetry.js';
import {
  COUNTERS,
  type CounterMetric,
  HISTOGRAMS,
  type Instruments,
  type Labels,
  LEVELS,
  LIMITS,
  type Measure,
  type Metric,
  type Reading,
  STATES,
} from './metrics.js';

/** The kind of an operation's failure, by the code of its error. */
const FAILURES: ReadonlyMap<string, string> = new Map([
  ['LOCK_STORE', 'store'],
  ['LOCK_CONFIGURATION', 'configuration'],
]);

const MODES: readonly HoldMode[] = ['write', 'read', 'permit'];

/** Records the metrics of the locks of any number of applications in this process. */
export class Recorder implements LockTelemetry {
  readonly #names = new Names();
  readonly #sources = new Set<LockSource>();
  /** The labels of counted values, by store, name and mode. */
  readonly #series = new Map<string, Map<string, Partial<Record<HoldMode | 'none', Labels>>>>();
  readonly #histograms: { readonly [key in keyof typeof HISTOGRAMS]: Measure };
  readonly #counters: { readonly [key in keyof typeof COUNTERS]: Measure };

  constructor(instruments: Instruments) {
    this.#histograms = made(HISTOGRAMS, (metric) => instruments.histogram(metric));
    this.#counters = made(COUNTERS, (metric) => instruments.counter(metric));
    const levels = made(LEVELS, () => new Level());
    instruments.level(LEVELS.holds, () => levels.holds.sum(this.#counted((source, mode) => source.holds(mode))));
    instruments.level(LEVELS.waiters, () => levels.waiters.sum(this.#counted((source, mode) => source.waiters(mode))));
    instruments.level(LEVELS.waiterLimit, () => levels.waiterLimit.sum(this.#limits()));
    instruments.state(LIMITS.permits, async () => this.#permits());
    const state = (metric: Metric, statesOf: StatesOf): void => instruments.state(metric, () => this.#worst(statesOf));
    state(STATES.up, ({ status }) => [{ isSo: status !== 'down' }]);
    state(STATES.hearing, ({ hearsTurns }) => [{ isSo: hearsTurns }]);
    state(STATES.memberVoting, ({ members = [] }) =>
      members.map(({ voting }, at) => ({ isSo: voting, labels: { 'distributed_lock.member': String(at + 1) } })),
    );
  }

  watch(source: LockSource): () => void {
    this.#sources.add(source);
    return () => void this.#sources.delete(source);
  }

  event(event: LockEvent): void {
    const labels = this.#labels(event);
    switch (event.type) {
      case 'acquired':
        return this.#histograms.acquireDuration(
          event.waitedMs / 1_000,
          { ...labels, 'distributed_lock.contended': event.contended },
          traceOf(event),
        );
      case 'refused':
        return this.#histograms.acquireDuration(event.waitedMs / 1_000, { ...labels, ...refusalOf(event) }, traceOf(event));
      case 'renewed':
        return this.#histograms.leaseMargin(event.margin, labels);
      case 'released':
        return this.#histograms.holdDuration(event.heldMs / 1_000, labels, traceOf(event));
      case 'lost':
        this.#histograms.holdDuration(event.heldMs / 1_000, { ...labels, 'error.type': event.reason }, traceOf(event));
        return this.#counters.losses(1, { ...labels, 'error.type': event.reason });
      case 'releaseFailed':
        return this.#counters.releaseFailures(1, labels);
      case 'cycle':
        return this.#counters.deadlocks(1, { ...labels, 'distributed_lock.scope': event.scope });
      case 'forced':
        return this.#counters.forceReleases(1, labels);
      case 'ranWithout':
        return this.#counters.runsWithout(1, labels);
      default:
    }
  }

  operation({ store, operation, durationMs, error }: MeasuredOperation): void {
    const labels: Labels = { 'distributed_lock.store': store, 'distributed_lock.operation': operation };
    const failed = error && { ...labels, 'error.type': FAILURES.get(error.code) ?? '_OTHER' };
    this.#histograms.operationDuration(durationMs / 1_000, failed ?? labels);
  }

  #labels({ name, store, mode }: Pick<LockEvent, 'name' | 'store' | 'mode'>): Labels {
    const known = this.#names.of(name);
    let series = this.#series.get(store);
    if (!series) {
      this.#series.set(store, (series = new Map()));
    }
    let byMode = series.get(known);
    if (!byMode) {
      series.set(known, (byMode = {}));
    }
    let labels = byMode[mode ?? 'none'];
    if (!labels) {
      labels = { 'distributed_lock.name': known, 'distributed_lock.store': store, ...(mode && { 'distributed_lock.mode': mode }) };
      byMode[mode ?? 'none'] = labels;
      this.#begin(labels);
    }
    return labels;
  }

  /** `increase()` sees nothing of a series that begins with its first count. */
  #begin(labels: Labels): void {
    for (const [counter, { each = [{}], mode }] of Object.entries(COUNTERS) as [keyof typeof COUNTERS, CounterMetric][]) {
      if (mode === undefined || mode === labels['distributed_lock.mode']) {
        each.forEach((more) => this.#counters[counter](0, { ...labels, ...more }));
      }
    }
  }

  *#counted(countsOf: (source: LockSource, mode: HoldMode) => ReadonlyMap<string, number>): Iterable<Reading> {
    for (const source of this.#sources) {
      for (const mode of MODES) {
        for (const [name, value] of countsOf(source, mode)) {
          yield { labels: this.#labels({ name, store: source.store, mode }), value };
        }
      }
    }
  }

  #permits(): Iterable<Reading> {
    const fewest = new Map<Labels, number>();
    for (const source of this.#sources) {
      for (const [name, count] of source.permits()) {
        const labels = this.#labels({ name, store: source.store, mode: 'permit' });
        fewest.set(labels, Math.min(count, fewest.get(labels) ?? count));
      }
    }
    return [...fewest].map(([{ 'distributed_lock.mode': _mode, ...labels }, value]) => ({ labels, value }));
  }

  *#limits(): Iterable<Reading> {
    for (const { store, maxWaiters } of this.#sources) {
      yield { labels: { 'distributed_lock.store': store }, value: maxWaiters };
    }
  }

  /** One reading for each series: 0 where the state is false for one of the applications. */
  async #worst(statesOf: StatesOf): Promise<Iterable<Reading>> {
    const worst = new Map<string, Reading>();
    const healths = [...this.#sources].map(async (source) => [source.store, await source.health()] as const);
    for (const [store, health] of await Promise.all(healths)) {
      for (const { isSo, labels } of statesOf(health)) {
        const series = { 'distributed_lock.store': store, ...labels };
        const id = JSON.stringify(series);
        if (isSo !== undefined && worst.get(id)?.value !== 0) {
          worst.set(id, { labels: series, value: Number(isSo) });
        }
      }
    }
    return worst.values();
  }
}

/** The trace of its call, where that is known. */
function traceOf({ description }: LockEvent): string | undefined {
  return description === undefined ? undefined : traceIn(description)?.traceId;
}

/** A caller that goes on without a busy lock is no error. */
function refusalOf({ skipped, reason }: Extract<LockEvent, { type: 'refused' }>): Labels {
  return skipped ? { 'distributed_lock.outcome': 'skipped' } : { 'error.type': reason };
}

/** The states in a health; undefined where a state is not known. */
type StatesOf = (health: LockHealth) => Iterable<{ readonly isSo: boolean | undefined; readonly labels?: Labels }>;

/** Makes one object for each metric of a list. */
function made<Key extends string, Listed, Made>(
  metrics: { readonly [key in Key]: Listed },
  make: (metric: Listed) => Made,
): { readonly [key in Key]: Made } {
  return Object.fromEntries(Object.entries<Listed>(metrics).map(([key, metric]) => [key, make(metric)])) as { [key in Key]: Made };
}

/** How many names there may be; more would fill the memory of the backend. */
const MOST = 200;
const OTHER = '_other';

/** The names that are counted. The first names keep theirs, and later names are counted together. */
class Names {
  readonly #known = new Set<string>();

  of(name: string): string {
    if (this.#known.has(name)) {
      return name;
    }
    if (this.#known.size >= MOST) {
      return OTHER;
    }
    this.#known.add(name);
    return name;
  }
}

/**
 * The series of one gauge. A series that was read once is 0 where nothing counts for it now: backends keep the last
 * value.
 */
class Level {
  readonly #series = new Map<string, Labels>();

  /** One reading for each series: the sum of the readings with its labels. */
  sum(readings: Iterable<Reading>): readonly Reading[] {
    const sums = new Map([...this.#series.keys()].map((series) => [series, 0]));
    for (const { labels, value } of readings) {
      const series = JSON.stringify(labels);
      this.#series.set(series, labels);
      sums.set(series, (sums.get(series) ?? 0) + value);
    }
    return [...sums].map(([series, value]) => ({ labels: this.#series.get(series) as Labels, value }));
  }
}

/** A registered symbol: a second copy of this package, which may be in the process too, has the same one. */
const RECORDER = Symbol.for('nestjs-distributed-lock.recorder');

/**
 * The recorder that was kept with an object of a backend. All applications of a process share it: their gauges are one
 * sum, and nothing is registered twice. It is kept there since it has to live as long as the metrics do.
 */
export function recorderOf(owner: object | undefined): Recorder | undefined {
  return (owner as { readonly [RECORDER]?: Recorder } | undefined)?.[RECORDER];
}

/** Keeps the recorder with that object, and gives it. */
export function keepRecorder(owner: object, recorder: Recorder): Recorder {
  Reflect.defineProperty(owner, RECORDER, { value: recorder, configurable: true });
  return recorder;
}
