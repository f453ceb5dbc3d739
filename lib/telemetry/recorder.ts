import type { LockEvent } from '../core/words/lock-event.js';
import type { LockHealth } from '../core/words/lock-health.js';
import type { LockSource, LockTelemetry, MeasuredOperation } from '../core/words/lock-telemetry.js';
import type { Instruments, Labels, Measure, Reading } from './instruments.js';
import { Level } from './level.js';
import { COUNTERS, HISTOGRAMS, LEVELS, STATES, type Metric } from './metrics.js';
import { Names } from './names.js';

/** What an operation failed with, by the code of its error. */
const FAILURES: ReadonlyMap<string, string> = new Map([
  ['LOCK_STORE', 'store'],
  ['LOCK_CONFIGURATION', 'configuration'],
]);

/** Records the metrics of the locks of any number of applications in this process. */
export class Recorder implements LockTelemetry {
  readonly #names = new Names();
  readonly #sources = new Set<LockSource>();
  readonly #histograms: { readonly [key in keyof typeof HISTOGRAMS]: Measure };
  readonly #counters: { readonly [key in keyof typeof COUNTERS]: Measure };

  constructor(instruments: Instruments) {
    this.#histograms = made(HISTOGRAMS, (metric) => instruments.histogram(metric));
    this.#counters = made(COUNTERS, (metric) => instruments.counter(metric));
    const levels = made(LEVELS, () => new Level());
    instruments.level(LEVELS.holds, () => levels.holds.sum(this.#counted((source) => source.holds())));
    instruments.level(LEVELS.waiters, () => levels.waiters.sum(this.#counted((source) => source.waiters())));
    instruments.level(LEVELS.waiterLimit, () => levels.waiterLimit.sum(this.#limits()));
    const state = (metric: Metric, statesOf: StatesOf): void => instruments.state(metric, () => this.#worst(statesOf));
    state(STATES.up, ({ reachable }) => [{ isSo: reachable }]);
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
        return this.#histograms.acquireDuration(event.waitedMs / 1_000, { ...labels, 'distributed_lock.contended': event.contended });
      case 'refused':
        return this.#histograms.acquireDuration(event.waitedMs / 1_000, { ...labels, 'error.type': event.reason });
      case 'renewed':
        return this.#histograms.leaseMargin(event.margin, labels);
      case 'released':
        return this.#histograms.holdDuration(event.heldMs / 1_000, labels);
      case 'lost':
        this.#histograms.holdDuration(event.heldMs / 1_000, { ...labels, 'error.type': event.reason });
        return this.#counters.losses(1, { ...labels, 'error.type': event.reason });
      case 'releaseFailed':
        return this.#counters.releaseFailures(1, labels);
      case 'cycle':
        return this.#counters.deadlocks(1, { ...labels, 'distributed_lock.scope': event.scope });
      case 'forced':
        return this.#counters.forceReleases(1, labels);
      default:
    }
  }

  operation({ store, operation, durationMs, error }: MeasuredOperation): void {
    const labels: Labels = { 'distributed_lock.store': store, 'distributed_lock.operation': operation };
    const failed = error && { ...labels, 'error.type': FAILURES.get(error.code) ?? '_OTHER' };
    this.#histograms.operationDuration(durationMs / 1_000, failed ?? labels);
  }

  #labels({ name, store }: { readonly name: string; readonly store: string }): Labels {
    return { 'distributed_lock.name': this.#names.of(name), 'distributed_lock.store': store };
  }

  *#counted(countsOf: (source: LockSource) => ReadonlyMap<string, number>): Iterable<Reading> {
    for (const source of this.#sources) {
      for (const [name, value] of countsOf(source)) {
        yield { labels: this.#labels({ name, store: source.store }), value };
      }
    }
  }

  *#limits(): Iterable<Reading> {
    for (const { store, maxWaiters } of this.#sources) {
      yield { labels: { 'distributed_lock.store': store }, value: maxWaiters };
    }
  }

  /** One reading for each series: 0 where it is not so for any of the applications. */
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

/** What a health says of a state; undefined where that is not known. */
type StatesOf = (health: LockHealth) => Iterable<{ readonly isSo: boolean | undefined; readonly labels?: Labels }>;

/** One of its kind for each metric of a list. */
function made<Key extends string, Listed, Made>(
  metrics: { readonly [key in Key]: Listed },
  make: (metric: Listed) => Made,
): { readonly [key in Key]: Made } {
  return Object.fromEntries(Object.entries<Listed>(metrics).map(([key, metric]) => [key, make(metric)])) as { [key in Key]: Made };
}
