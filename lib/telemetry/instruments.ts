import type { HistogramMetric, Label, Metric } from './metrics.js';

/** What a value belongs to. */
export type Labels = Readonly<Partial<Record<Label, string | boolean>>>;

/** The value of a gauge for some labels. */
export interface Reading {
  readonly labels: Labels;
  readonly value: number;
}

/** Takes a value. */
export type Measure = (value: number, labels: Labels) => void;

/** What makes the metrics of a backend. */
export interface Instruments {
  histogram(metric: HistogramMetric): Measure;
  counter(metric: Metric): Measure;
  /** A figure that is summed over processes. `read` is called whenever metrics are collected. */
  level(metric: Metric, read: () => Iterable<Reading>): void;
  /** One that is not. `read` never rejects. */
  state(metric: Metric, read: () => Promise<Iterable<Reading>>): void;
}
