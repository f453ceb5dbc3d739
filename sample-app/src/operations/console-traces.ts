import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import { SpanLines } from './span-lines.js';

/** Starts the SDK of OpenTelemetry for this process. Without it, spans go nowhere. */
export function startConsoleTraces(): void {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SpanLines()] }));
}
