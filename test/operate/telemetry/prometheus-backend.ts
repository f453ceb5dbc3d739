import type { LockTelemetry } from 'nestjs-distributed-lock';
import { prometheusTelemetry } from 'nestjs-distributed-lock/prometheus';
import { Registry } from 'prom-client';
import type { Backend, Series } from './backend';

/** The names of Prometheus, and those of OpenTelemetry. */
export const NAMES: ReadonlyMap<string, string> = new Map([
  ['distributed_lock_acquire_duration_seconds', 'distributed_lock.acquire.duration'],
  ['distributed_lock_hold_duration_seconds', 'distributed_lock.hold.duration'],
  ['distributed_lock_hold_active', 'distributed_lock.hold.active'],
  ['distributed_lock_waiter_active', 'distributed_lock.waiter.active'],
  ['distributed_lock_waiter_limit', 'distributed_lock.waiter.limit'],
  ['distributed_lock_permit_limit', 'distributed_lock.permit.limit'],
  ['distributed_lock_losses_total', 'distributed_lock.losses'],
  ['distributed_lock_lease_margin', 'distributed_lock.lease.margin'],
  ['distributed_lock_release_failures_total', 'distributed_lock.release.failures'],
  ['distributed_lock_deadlocks_total', 'distributed_lock.deadlocks'],
  ['distributed_lock_force_releases_total', 'distributed_lock.force_releases'],
  ['distributed_lock_runs_without_permit_total', 'distributed_lock.runs_without_permit'],
  ['distributed_lock_store_operation_duration_seconds', 'distributed_lock.store.operation.duration'],
  ['distributed_lock_store_up', 'distributed_lock.store.up'],
  ['distributed_lock_store_hearing', 'distributed_lock.store.hearing'],
  ['distributed_lock_store_member_voting', 'distributed_lock.store.member.voting'],
]);

/** The names of labels in Prometheus, and those of OpenTelemetry. */
export const LABELS: ReadonlyMap<string, string> = new Map([
  ['distributed_lock_name', 'distributed_lock.name'],
  ['distributed_lock_store', 'distributed_lock.store'],
  ['distributed_lock_mode', 'distributed_lock.mode'],
  ['distributed_lock_contended', 'distributed_lock.contended'],
  ['distributed_lock_outcome', 'distributed_lock.outcome'],
  ['distributed_lock_operation', 'distributed_lock.operation'],
  ['distributed_lock_scope', 'distributed_lock.scope'],
  ['distributed_lock_member', 'distributed_lock.member'],
  ['error_type', 'error.type'],
]);

/** One value of prom-client's JSON, whose types leave the name of a histogram's part out. */
interface Sample {
  readonly metricName?: string;
  readonly labels: Readonly<Record<string, string | number | undefined>>;
  readonly value: number;
}

/** A registry of prom-client. */
export class PrometheusBackend implements Backend {
  readonly register = new Registry();

  telemetry(): LockTelemetry {
    return prometheusTelemetry({ register: this.register });
  }

  async read(): Promise<ReadonlyMap<string, readonly Series[]>> {
    const metrics = await this.register.getMetricsAsJSON();
    return new Map(metrics.map(({ name, values }) => [NAMES.get(name) ?? name, seriesOf(values)]));
  }
}

function seriesOf(samples: readonly Sample[]): readonly Series[] {
  const bounds = [...new Set(samples.map(({ labels }) => labels['le']).filter((bound) => typeof bound === 'number'))];
  const sums = new Map(samples.filter(isPart('_sum')).map(({ labels, value }) => [JSON.stringify(labels), value]));
  return samples
    .filter((sample) => sample.metricName === undefined || isPart('_count')(sample) || isPart('_total')(sample))
    .map(({ labels, value }) => ({
      labels: Object.fromEntries(Object.entries(labels).map(([name, label]) => [LABELS.get(name) ?? name, String(label)])),
      value,
      sum: sums.get(JSON.stringify(labels)),
      bounds: bounds.length > 0 ? bounds : undefined,
    }));
}

function isPart(ending: string): (sample: Sample) => boolean {
  return ({ metricName }) => metricName?.endsWith(ending) === true;
}
