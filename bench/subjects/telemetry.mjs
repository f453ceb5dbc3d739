// One application with and without telemetry, both with the SDK of OpenTelemetry, which keeps nothing.
import { context, metrics, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { AlwaysOffSampler, BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { MemoryLockStore, RedisLockStore } from '../library.mjs';
import { otelTelemetry } from '../../dist/esm/operate/otel/index.js';
import { libraryWith } from './this-library.mjs';

export const off = { name: 'off', connect: (port) => start(port) };
export const on = { name: 'traces and metrics', connect: (port) => start(port, otelTelemetry()) };
/** The parts of telemetry, to measure the cost of each by itself. */
export const PARTS = [
  off,
  { name: 'metrics', connect: (port) => start(port, otelTelemetry({ spans: false })) },
  {
    name: 'traces, none sampled',
    connect: (port) =>
      start(port, otelTelemetry({ metrics: false, tracerProvider: new BasicTracerProvider({ sampler: new AlwaysOffSampler() }) })),
  },
  { name: 'traces', connect: (port) => start(port, otelTelemetry({ metrics: false })) },
  on,
];

/** Registers the SDK with what an application has in production, but for the network: spans go nowhere, in batches. */
export function registerSdk() {
  const nowhere = { export: (_, done) => done({ code: 0 }), shutdown: async () => {}, forceFlush: async () => {} };
  const provider = new BasicTracerProvider({ spanProcessors: [new BatchSpanProcessor(nowhere)] });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(provider);
  metrics.setGlobalMeterProvider(new MeterProvider());
  return async () => {
    await provider.shutdown();
    [trace, metrics, context].forEach((api) => api.disable());
  };
}

/** On Redis, or in memory without a port. */
function start(port, telemetry) {
  return libraryWith(port ? new RedisLockStore({ host: '127.0.0.1', port }) : new MemoryLockStore(), telemetry);
}
