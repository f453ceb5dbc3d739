import { printable } from '../../lib/core/words/shown.js';

/** A column of a table. */
export interface Column<Row> {
  readonly title: string;
  readonly text: (row: Row) => string;
  /** Numbers stand at the right; long texts may be shortened. */
  readonly kind?: 'number' | 'long';
}

/** The least width to which a long text is cut, in columns. */
const LEAST_WIDTH = 12;
const GAP = '  ';

/** The lines of a table that is `width` columns wide where that is possible. Control characters are escaped. */
export function tableOf<Row>(columns: readonly Column<Row>[], rows: readonly Row[], width: number): string[] {
  const lines = [columns.map(({ title }) => title), ...rows.map((row) => columns.map(({ text }) => printable(text(row))))];
  const widths = fit(
    columns.map((_, at) => Math.max(...lines.map((line) => lengthOf(line[at] as string)))),
    columns,
    width,
  );
  return lines.map((line) =>
    line
      .map((text, at) => aligned(text, widths[at] as number, columns[at]?.kind === 'number'))
      .join(GAP)
      .trimEnd(),
  );
}

/** A text that is at most so long: its middle is left out, since keys often begin alike. */
export function shortened(text: string, width: number): string {
  const characters = Array.from(text);
  if (characters.length <= width) {
    return text;
  }
  const tail = Math.floor((width - 1) / 2);
  return `${characters.slice(0, width - 1 - tail).join('')}…${tail > 0 ? characters.slice(-tail).join('') : ''}`;
}

/** Breaks a text between its words into lines of `width` characters at most, but for longer words. */
export function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && lengthOf(`${last} ${word}`) <= width) {
      lines[lines.length - 1] = `${last} ${word}`;
    } else {
      lines.push(word);
    }
  }
  return lines;
}

/** Takes what is too much from the widest of the long columns. */
function fit<Row>(natural: readonly number[], columns: readonly Column<Row>[], width: number): readonly number[] {
  const widths = [...natural];
  const isLong = (at: number): boolean => columns[at]?.kind === 'long' && (widths[at] as number) > LEAST_WIDTH;
  let excess = widths.reduce((sum, each) => sum + each, GAP.length * (widths.length - 1)) - width;
  for (; excess > 0; excess--) {
    const [widest] = widths
      .map((_, at) => at)
      .filter(isLong)
      .toSorted((one, other) => (widths[other] as number) - (widths[one] as number));
    if (widest === undefined) {
      break;
    }
    widths[widest] = (widths[widest] as number) - 1;
  }
  return widths;
}

function aligned(text: string, width: number, isNumber: boolean): string {
  const short = shortened(text, width);
  const padding = ' '.repeat(width - lengthOf(short));
  return isNumber ? padding + short : short + padding;
}

function lengthOf(text: string): number {
  return Array.from(text).length;
}
