export { otelTelemetry } from './otel-telemetry.js';
export type { OtelTelemetryOptions, SpanChoice } from './otel-telemetry.options.js';
