import type { MeterProvider, TracerProvider } from '@opentelemetry/api';
import { checkMethods, checkOptions, checkSwitch, type OptionNames, wrongOption } from '../../core/words/check-options.js';

/** Which spans are made: of waiting calls, of calls that have their locks, of both, or none. */
export type SpanChoice = 'both' | 'wait' | 'hold' | false;

/** The options of `otelTelemetry`. */
export interface OtelTelemetryOptions {
  /** Which spans are made. Default: `'both'`. */
  readonly spans?: SpanChoice | undefined;
  /** Whether keys are attributes of spans. They may name persons. Default: false. */
  readonly keys?: boolean | undefined;
  /** Whether the metrics of docs/operations/metrics.md are made. Default: true. */
  readonly metrics?: boolean | undefined;
  /** Makes the spans. Default: the provider that the application registered with OpenTelemetry. */
  readonly tracerProvider?: TracerProvider | undefined;
  /** Makes the metrics. Default: the provider that is registered with OpenTelemetry when the locks are made. */
  readonly meterProvider?: MeterProvider | undefined;
}

const CHOICES: readonly unknown[] = ['both', 'wait', 'hold', false] satisfies readonly SpanChoice[];

const OPTIONS: OptionNames<OtelTelemetryOptions> = {
  spans: true,
  keys: true,
  metrics: true,
  tracerProvider: true,
  meterProvider: true,
};

/** Throws `LockConfigurationError` for an option that is unknown or has a wrong value. */
export function checkTelemetryOptions(options: OtelTelemetryOptions): void {
  checkOptions('otelTelemetry', options, OPTIONS);
  const { spans = 'both', keys, metrics, tracerProvider, meterProvider } = options;
  if (!CHOICES.includes(spans)) {
    throw wrongOption('otelTelemetry: spans', spans, "Use 'both', 'wait', 'hold' or false.");
  }
  checkSwitch('otelTelemetry', 'keys', keys);
  checkSwitch('otelTelemetry', 'metrics', metrics);
  checkMethods('otelTelemetry: tracerProvider', tracerProvider, ['getTracer'], 'Pass a TracerProvider of OpenTelemetry, or leave it out.');
  checkMethods('otelTelemetry: meterProvider', meterProvider, ['getMeter'], 'Pass a MeterProvider of OpenTelemetry, or leave it out.');
}
