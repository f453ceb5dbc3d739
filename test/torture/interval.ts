/** A time with a beginning and an end, in milliseconds. */
export interface Interval {
  readonly from: number;
  readonly to: number;
}

/** The parts of a time that lie in none of the others, as pieces in their order. */
export function without(whole: Interval, others: readonly Interval[]): Interval[] {
  const pieces: Interval[] = [];
  let { from } = whole;
  const touching = others.filter((other) => other.to > whole.from && other.from < whole.to);
  for (const other of touching.toSorted((first, second) => first.from - second.from)) {
    if (other.from > from) {
      pieces.push({ from, to: other.from });
    }
    from = Math.max(from, other.to);
  }
  return from < whole.to ? [...pieces, { from, to: whole.to }] : pieces;
}

/** How much of a time lies in one of the others, in milliseconds. */
export function within(whole: Interval, others: readonly Interval[]): number {
  return whole.to - whole.from - without(whole, others).reduce((sum, { from, to }) => sum + to - from, 0);
}
