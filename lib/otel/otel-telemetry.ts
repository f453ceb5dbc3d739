import { Telemetry, type LockTelemetry } from '../core/telemetry.js';
import { checkOptions, type OtelTelemetryOptions } from './otel-telemetry.options.js';
import { traces } from './traces.js';

/**
 * Tells OpenTelemetry of locks: `LockModule.forRoot({ store, telemetry: otelTelemetry() })`. Throws
 * `LockConfigurationError` for an option that is unknown or has a wrong value. What fails in OpenTelemetry reaches no
 * lock.
 */
export function otelTelemetry(options: OtelTelemetryOptions = {}): LockTelemetry {
  checkOptions(options);
  return new Telemetry([...traces(options)]);
}
