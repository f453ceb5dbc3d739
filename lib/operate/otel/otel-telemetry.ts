import type { LockTelemetry } from '../../core/words/lock-telemetry.js';
import { Telemetry } from '../../core/watching/telemetry.js';
import { meterTelemetry } from './meter-telemetry.js';
import { checkTelemetryOptions, type OtelTelemetryOptions } from './otel-telemetry.options.js';
import { trace, type Tracer } from '@opentelemetry/api';
import { HoldSpans } from './hold-spans.js';
import { SCOPE } from './attributes.js';
import { TraceIds } from './trace-ids.js';
import { WaitSpans } from './wait-spans.js';

/**
 * Traces and metrics for OpenTelemetry: `LockModule.forRoot({ store, telemetry: otelTelemetry() })`. Start the SDK
 * before the application: locks that were made before it have no metrics. Throws `LockConfigurationError` for an option
 * that is unknown or has a wrong value. A failure in OpenTelemetry reaches no lock.
 */
export function otelTelemetry(options: OtelTelemetryOptions = {}): LockTelemetry {
  checkTelemetryOptions(options);
  const { metrics = true, meterProvider } = options;
  return new Telemetry([...traces(options), ...(metrics ? [meterTelemetry(meterProvider)] : [])]);
}

/** The telemetry that makes the spans of the options. */
export function traces({ spans = 'both', keys = false, tracerProvider = trace }: OtelTelemetryOptions): readonly LockTelemetry[] {
  let tracer: Tracer | undefined;
  // Not before a span is to be made: a provider that throws must not keep the application from starting.
  const source = (): Tracer => (tracer ??= tracerProvider.getTracer(SCOPE));
  return [
    ...(spans === false ? [] : [new TraceIds()]),
    ...(spans === 'both' || spans === 'wait' ? [new WaitSpans(source, keys)] : []),
    ...(spans === 'both' || spans === 'hold' ? [new HoldSpans(source, keys)] : []),
  ];
}
