/**
 * How tables share the height of a screen. Each table has two lines above its rows, and a line between it and the next
 * one.
 */
export interface Layout {
  /** The rows of each table that is shown; tables at the end are not, where the height is too small. */
  readonly rows: readonly number[];
  /** The row at which the longest table ends on the screen, if it comes first. */
  readonly last: number;
  /** The most rows of a table. */
  readonly page: number;
}

const LINES_ABOVE = 2;
const LINES_BETWEEN = 1;

/** Shares `height` lines between tables with so many rows: what one does not need is for the others. */
export function layoutOf(counts: readonly number[], height: number): Layout {
  const shown = counts.slice(0, Math.max(1, tablesIn(height)));
  const rows = shares(shown, height - shown.length * (LINES_ABOVE + LINES_BETWEEN) + LINES_BETWEEN);
  return {
    rows,
    last: Math.max(...shown.map((count, at) => count - (rows[at] as number))),
    page: Math.max(1, ...rows),
  };
}

/** How many tables fit with a row each. */
function tablesIn(height: number): number {
  return Math.floor((height + LINES_BETWEEN) / (LINES_ABOVE + LINES_BETWEEN + 1));
}

/** The tables that need least are served first, and none gets more than an equal part of what is left. */
function shares(counts: readonly number[], height: number): number[] {
  const rows = counts.map(() => 0);
  let left = Math.max(counts.length, height);
  const order = counts.map((_, at) => at).toSorted((one, other) => (counts[one] as number) - (counts[other] as number));
  order.forEach((at, served) => {
    const share = Math.min(counts[at] as number, Math.floor(left / (order.length - served)));
    rows[at] = share;
    left -= share;
  });
  return rows;
}
