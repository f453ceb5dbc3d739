import type { Meter } from '@opentelemetry/api';
import type { Instruments, Measure, Reading } from '../telemetry/instruments.js';
import type { HistogramMetric, Metric } from '../telemetry/metrics.js';

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

  gauge({ name, unit, description }: Metric, read: () => Iterable<Reading>): void {
    // What is summed over processes is an UpDownCounter for OpenTelemetry.
    this.#meter.createObservableUpDownCounter(name, { unit, description }).addCallback((result) => {
      for (const { labels, value } of read()) {
        result.observe(value, labels);
      }
    });
  }
}
