import type { TracerProvider } from '@opentelemetry/api';
import { LockConfigurationError } from '../core/errors.js';
import { shown } from '../core/shown.js';

/** Which spans are made: of waiting calls, of calls that have their locks, of both, or none. */
export type SpanChoice = 'both' | 'wait' | 'hold' | false;

/** The options of `otelTelemetry`. */
export interface OtelTelemetryOptions {
  /** Which spans are made. Default: `'both'`. */
  readonly spans?: SpanChoice | undefined;
  /** Whether keys are attributes of spans. They may name persons. Default: false. */
  readonly keys?: boolean | undefined;
  /** What makes the spans. Default: the provider that the application registered with OpenTelemetry. */
  readonly tracerProvider?: TracerProvider | undefined;
}

const CHOICES: readonly unknown[] = ['both', 'wait', 'hold', false] satisfies readonly SpanChoice[];

/** Every option; the compiler misses one that is not here. */
const OPTIONS: Readonly<Record<keyof OtelTelemetryOptions, true>> = { spans: true, keys: true, tracerProvider: true };

/** Throws `LockConfigurationError` for an option that is unknown or has a wrong value. */
export function checkOptions(options: OtelTelemetryOptions): void {
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(OPTIONS, name));
  if (unknown !== undefined) {
    throw wrong(`there is no option ${shown(unknown)}. The options are: ${Object.keys(OPTIONS).join(', ')}.`);
  }
  const { spans = 'both', keys = false, tracerProvider } = options;
  if (!CHOICES.includes(spans)) {
    throw wrong(`spans is ${shown(spans)}. Use 'both', 'wait', 'hold' or false.`);
  }
  if (typeof keys !== 'boolean') {
    throw wrong(`keys is ${shown(keys)}. Use true or false.`);
  }
  if (tracerProvider !== undefined && typeof (tracerProvider as TracerProvider | null)?.getTracer !== 'function') {
    throw wrong(`tracerProvider is ${shown(tracerProvider)}. Pass a TracerProvider of OpenTelemetry, or leave it out.`);
  }
}

function wrong(what: string): LockConfigurationError {
  return new LockConfigurationError(`otelTelemetry: ${what}`);
}
