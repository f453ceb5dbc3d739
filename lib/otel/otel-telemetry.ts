import type { LockTelemetry } from '../core/words/lock-telemetry.js';
import { Telemetry } from '../core/watching/telemetry.js';
import { MeterTelemetry } from './meter-telemetry.js';
import { checkTelemetryOptions, type OtelTelemetryOptions } from './otel-telemetry.options.js';
import { traces } from './traces.js';

/**
 * Traces and metrics for OpenTelemetry: `LockModule.forRoot({ store, telemetry: otelTelemetry() })`. Start the SDK before
 * the application: locks that were made before it have no metrics. Throws `LockConfigurationError` for an option that is
 * unknown or has a wrong value. What fails in OpenTelemetry reaches no lock.
 */
export function otelTelemetry(options: OtelTelemetryOptions = {}): LockTelemetry {
  checkTelemetryOptions(options);
  const { metrics = true, meterProvider } = options;
  return new Telemetry([...traces(options), ...(metrics ? [new MeterTelemetry(meterProvider)] : [])]);
}
