export { otelMetrics, type OtelMetricsOptions } from './otel-metrics.js';
