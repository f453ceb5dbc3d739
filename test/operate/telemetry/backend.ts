import type { LockTelemetry } from 'nestjs-distributed-lock';

/** The data that a backend has of a metric for some labels. */
export interface Series {
  /** By their names in OpenTelemetry. */
  readonly labels: Readonly<Record<string, string>>;
  /** The value of a counter or gauge, or how many values a histogram has. */
  readonly value: number;
  /** The sum of the values of a histogram. */
  readonly sum: number | undefined;
  /** The upper bounds of a histogram's buckets. */
  readonly bounds: readonly number[] | undefined;
}

/** Where metrics go in a test. */
export interface Backend {
  /** The option of one application. */
  telemetry(): LockTelemetry;
  /** Every metric that has a series, by its name in OpenTelemetry. */
  read(): Promise<ReadonlyMap<string, readonly Series[]>>;
}
