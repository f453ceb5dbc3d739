import { DataPointType, MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';
import type { LockTelemetry } from 'nestjs-distributed-lock';
import { otelTelemetry } from 'nestjs-distributed-lock/otel';
import type { Backend, Series } from './backend';

class Reader extends MetricReader {
  protected override async onForceFlush(): Promise<void> {}
  protected override async onShutdown(): Promise<void> {}
}

/** The SDK of OpenTelemetry. */
export class OtelBackend implements Backend {
  readonly #reader = new Reader();
  readonly provider = new MeterProvider({ readers: [this.#reader] });

  telemetry(): LockTelemetry {
    return otelTelemetry({ spans: false, meterProvider: this.provider });
  }

  async read(): Promise<ReadonlyMap<string, readonly Series[]>> {
    const { resourceMetrics, errors } = await this.#reader.collect();
    expect(errors).toEqual([]);
    const metrics = resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics);
    return new Map(
      metrics.map((metric) => [
        metric.descriptor.name,
        metric.dataPoints.map(({ attributes, value }): Series => {
          const labels = Object.fromEntries(Object.entries(attributes).map(([name, label]) => [name, String(label)]));
          return metric.dataPointType === DataPointType.HISTOGRAM && typeof value === 'object' && 'buckets' in value
            ? { labels, value: value.count, sum: value.sum, bounds: value.buckets.boundaries }
            : { labels, value: value as number, sum: undefined, bounds: undefined };
        }),
      ]),
    );
  }
}
