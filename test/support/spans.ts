import { context } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor, type ReadableSpan } from '@opentelemetry/sdk-trace-base';

/** The SDK of OpenTelemetry, with spans that stay in memory. */
export class Spans {
  readonly #exporter = new InMemorySpanExporter();
  readonly provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(this.#exporter)] });

  constructor() {
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  }

  /** Runs code inside a span of the application. */
  inside<T>(name: string, run: () => Promise<T>): Promise<T> {
    return this.provider.getTracer('application').startActiveSpan(name, async (span) => {
      try {
        return await run();
      } finally {
        span.end();
      }
    });
  }

  /** Those that have ended, in the order in which they did. */
  get ended(): readonly ReadableSpan[] {
    return this.#exporter.getFinishedSpans();
  }

  named(name: string): ReadableSpan[] {
    return this.ended.filter((span) => span.name === name);
  }

  one(name: string): ReadableSpan {
    const found = this.named(name);
    if (found.length !== 1) {
      throw new Error(`There are ${found.length} spans named "${name}". All: ${this.ended.map((span) => span.name).join(', ')}`);
    }
    return found[0] as ReadableSpan;
  }

  /** All that the spans say, as text. */
  get text(): string {
    return JSON.stringify(this.ended.map(({ name, attributes, status, events, links }) => ({ name, attributes, status, events, links })));
  }

  clear(): void {
    this.#exporter.reset();
  }

  /** No context leads to the next suite. */
  end(): void {
    context.disable();
  }
}

/** The id of the parent of a span. */
export function parentOf(span: ReadableSpan): string | undefined {
  return span.parentSpanContext?.spanId;
}

/** Its own id. */
export function idOf(span: ReadableSpan): string {
  return span.spanContext().spanId;
}

/** From its start to its end, in milliseconds. */
export function durationOf({ duration: [seconds, nanoseconds] }: ReadableSpan): number {
  return seconds * 1000 + nanoseconds / 1e6;
}
