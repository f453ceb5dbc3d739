import type { Meter, ObservableResult } from '@opentelemetry/api';
import type { Instruments, Measure, Reading, HistogramMetric, Metric } from '../telemetry/metrics.js';

/** The instruments of an OpenTelemetry meter. */
export class MeterInstruments implements Instruments {
  readonly #meter: Meter;

  constructor(meter: Meter) {
    this.#meter = meter;
  }

  histogram({ name, unit, description, buckets }: HistogramMetric): Measure {
    const advice = { explicitBucketBoundaries: [...buckets] };
    const histogram = this.#meter.createHistogram(name, { unit, description, advice });
    return (value, labels) => histogram.record(value, labels);
  }

  counter({ name, unit, description }: Metric): Measure {
    const counter = this.#meter.createCounter(name, { unit, description });
    return (value, labels) => counter.add(value, labels);
  }

  level({ name, unit, description }: Metric, read: () => Iterable<Reading>): void {
    this.#meter.createObservableUpDownCounter(name, { unit, description }).addCallback((result) => observe(read(), result));
  }

  state({ name, unit, description }: Metric, read: () => Promise<Iterable<Reading>>): void {
    this.#meter.createObservableGauge(name, { unit, description }).addCallback(async (result) => observe(await read(), result));
  }
}

function observe(readings: Iterable<Reading>, result: ObservableResult): void {
  for (const { labels, value } of readings) {
    result.observe(value, labels);
  }
}
