import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Instruments, Labels, Measure, Reading, HistogramMetric, Metric } from '../telemetry/metrics.js';

/** Metrics of prom-client in a registry. */
export class RegistryInstruments implements Instruments {
  readonly #registers: Registry[];

  constructor(register: Registry) {
    this.#registers = [register];
  }

  histogram(metric: HistogramMetric): Measure {
    const { settings, labelled } = this.#settingsOf(metric);
    const of = { name: prometheusName(metric), buckets: [...metric.buckets], ...settings };
    if (this.#registers.every(({ contentType }) => (contentType as string) !== Registry.OPENMETRICS_CONTENT_TYPE)) {
      const histogram = new Histogram(of);
      return (value, labels) => histogram.observe(labelled(labels), value);
    }
    const histogram = new Histogram<string>({ ...of, enableExemplars: true });
    return (value, labels, traceId) =>
      histogram.observe({ labels: labelled(labels), value, ...(traceId !== undefined && { exemplarLabels: { trace_id: traceId } }) });
  }

  counter(metric: Metric): Measure {
    const { settings, labelled } = this.#settingsOf(metric);
    const counter = new Counter({ name: counterName(metric), ...settings });
    return (value, labels) => counter.inc(labelled(labels), value);
  }

  level(metric: Metric, read: () => Iterable<Reading>): void {
    this.#gauge(metric, read, 'sum');
  }

  /** Of the workers of a cluster, the one that is worst off counts. */
  state(metric: Metric, read: () => Promise<Iterable<Reading>>): void {
    this.#gauge(metric, read, 'min');
  }

  #gauge(metric: Metric, read: () => Iterable<Reading> | Promise<Iterable<Reading>>, aggregator: 'sum' | 'min'): void {
    const { settings, labelled } = this.#settingsOf(metric);
    const gauge: Gauge = new Gauge({
      name: prometheusName(metric),
      aggregator,
      ...settings,
      async collect() {
        const readings = await read();
        // A store that is closed has no state any more.
        gauge.reset();
        for (const { labels, value } of readings) {
          gauge.set(labelled(labels), value);
        }
      },
    });
  }

  #settingsOf({ description, labels }: Metric) {
    const words = new Map<string, string>(labels.map((label) => [label, prometheusLabel(label)]));
    return {
      settings: { help: description, labelNames: [...words.values()], registers: this.#registers },
      labelled: (given: Labels) =>
        Object.fromEntries(Object.entries(given).map(([label, value]) => [words.get(label) as string, String(value)])),
    };
  }
}

/** The name of a label of OpenTelemetry in Prometheus. */
export function prometheusLabel(label: string): string {
  return label.replaceAll('.', '_');
}

/** The name of a histogram or gauge of OpenTelemetry in Prometheus. */
export function prometheusName({ name, unit }: Metric): string {
  return `${name.replaceAll('.', '_')}${unit === 's' ? '_seconds' : ''}`;
}

/** The name of a counter in Prometheus. */
export function counterName(metric: Metric): string {
  return `${prometheusName(metric)}_total`;
}
