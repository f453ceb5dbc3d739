import { trace, type Tracer } from '@opentelemetry/api';
import type { LockTelemetry } from '../core/words/lock-telemetry.js';
import { HoldSpans } from './hold-spans.js';
import type { OtelTelemetryOptions } from './otel-telemetry.options.js';
import { SCOPE } from './scope.js';
import { WaitSpans } from './wait-spans.js';

/** What makes the spans that the options ask for. */
export function traces({ spans = 'both', keys = false, tracerProvider = trace }: OtelTelemetryOptions): readonly LockTelemetry[] {
  let tracer: Tracer | undefined;
  // Not before a span is to be made: a provider that throws must not keep the application from starting.
  const source = (): Tracer => (tracer ??= tracerProvider.getTracer(SCOPE));
  return [
    ...(spans === 'both' || spans === 'wait' ? [new WaitSpans(source, keys)] : []),
    ...(spans === 'both' || spans === 'hold' ? [new HoldSpans(source, keys)] : []),
  ];
}
