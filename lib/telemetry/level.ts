import type { Labels, Reading } from './instruments.js';

/** The series of one gauge. A series that was read once is 0 where nothing counts for it now: backends keep the last value. */
export class Level {
  readonly #series = new Map<string, Labels>();

  /** One reading for each series: the sum of those with its labels. */
  sum(readings: Iterable<Reading>): readonly Reading[] {
    const sums = new Map([...this.#series.keys()].map((series) => [series, 0]));
    for (const { labels, value } of readings) {
      const series = JSON.stringify(labels);
      this.#series.set(series, labels);
      sums.set(series, (sums.get(series) ?? 0) + value);
    }
    return [...sums].map(([series, value]) => ({ labels: this.#series.get(series) as Labels, value }));
  }
}
