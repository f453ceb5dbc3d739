import type { ReadableSpan, SpanProcessor } from '@opentelemetry/sdk-trace-base';

/**
 * Prints one line for each span when it ends, so a parent comes after its children. The SDK's ConsoleSpanExporter
 * prints thirty lines for each.
 */
export class SpanLines implements SpanProcessor {
  onStart(): void {}

  onEnd(span: ReadableSpan): void {
    console.log(lineOf(span));
  }

  async forceFlush(): Promise<void> {}

  async shutdown(): Promise<void> {}
}

function lineOf(span: ReadableSpan): string {
  const { traceId, spanId } = span.spanContext();
  const [seconds, nanoseconds] = span.duration;
  const parts = [
    `trace=${short(traceId)}`,
    span.parentSpanContext && `parent=${short(span.parentSpanContext.spanId)}`,
    `span=${short(spanId)}`,
    span.name,
    `${(seconds * 1e3 + nanoseconds / 1e6).toFixed(1)} ms`,
    describe(span.attributes),
  ];
  return parts.filter(Boolean).join(' ');
}

/** Enough of an id to tell it from others on a screen. */
function short(id: string): string {
  return id.slice(0, 6);
}

/** Leaves out the prefix `distributed_lock.` of the attributes of locks. */
function describe(attributes: ReadableSpan['attributes']): string {
  return Object.entries(attributes)
    .map(([name, value]) => `${name.replace('distributed_lock.', '')}=${String(value)}`)
    .join(', ');
}
