export { prometheusTelemetry, type PrometheusOptions } from './prometheus-telemetry.js';
