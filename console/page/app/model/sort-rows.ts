import type { LockRow } from './lock-rows.js';

/** The columns that locks can be sorted by. */
export type LockColumn = 'key' | 'age' | 'lease' | 'waiting';

/**
 * Sorts locks. With `isDown`, first comes the lock that is held longest, whose lease has most left, or that most calls
 * wait for. Of locks that are alike, the one that is held longest comes first.
 */
export function sortRows(
  rows: readonly LockRow[],
  { column, isDown }: { readonly column: LockColumn; readonly isDown: boolean },
): LockRow[] {
  const sign = isDown ? -1 : 1;
  return rows
    .map((row) => [rank(row, column), rank(row, 'age'), row] as const)
    .toSorted(([one, oneAge], [other, otherAge]) => sign * compare(one, other) || compare(otherAge, oneAge))
    .map(([, , row]) => row);
}

function rank({ key, since, until, waiting }: LockRow, column: LockColumn): string | number {
  switch (column) {
    case 'key':
      return key;
    case 'age':
      return -(since ?? Infinity);
    case 'lease':
      return until ?? Infinity;
    case 'waiting':
      return waiting.length;
  }
}

function compare<T extends string | number>(one: T, other: T): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
