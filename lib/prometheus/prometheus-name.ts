import type { Metric } from '../telemetry/metrics.js';

/** The name of a label of OpenTelemetry in Prometheus. */
export function prometheusLabel(label: string): string {
  return label.replaceAll('.', '_');
}

/** The name of a histogram or gauge of OpenTelemetry in Prometheus. */
export function prometheusName({ name, unit }: Metric): string {
  return `${name.replaceAll('.', '_')}${unit === 's' ? '_seconds' : ''}`;
}

/** That of a counter. */
export function counterName(metric: Metric): string {
  return `${prometheusName(metric)}_total`;
}
