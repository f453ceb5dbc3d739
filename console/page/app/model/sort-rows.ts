import type { LockRow } from './lock-rows.js';

/** What locks can be sorted by. */
export type LockColumn = 'key' | 'age' | 'lease' | 'queue';

/** The lock that is held longest, whose lease has most left, or that most calls wait for, first where `isDown`. */
export function sortRows(
  rows: readonly LockRow[],
  { column, isDown }: { readonly column: LockColumn; readonly isDown: boolean },
): LockRow[] {
  const sorted = rows.map((row) => [rank(row, column), row] as const).toSorted(([one], [other]) => compare(one, other));
  return (isDown ? sorted.toReversed() : sorted).map(([, row]) => row);
}

function rank({ key, since, until, waiting }: LockRow, column: LockColumn): string | number {
  switch (column) {
    case 'key':
      return key;
    case 'age':
      return -(since ?? Infinity);
    case 'lease':
      return until ?? Infinity;
    case 'queue':
      return waiting.length;
  }
}

function compare<T extends string | number>(one: T, other: T): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
