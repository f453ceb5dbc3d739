import { calledAs } from '../../../lib/core/words/description.js';
import { sharing } from '../../../lib/core/words/shown.js';
import { shownMs } from '../age.js';
import { tableOf, type Column } from '../table.js';
import type { HeldRow, Snapshot, WaitedKey } from './snapshot.js';

/** A table with a title, of which a part is shown. */
export interface Section {
  readonly title: string;
  /** How many rows there are. */
  readonly count: number;
  /** The heads of the columns, and the rows from `first` on. */
  readonly table: (first: number, rows: number, width: number) => string[];
}

const OLDEST: readonly Column<HeldRow>[] = [
  { title: 'KEY', text: ({ key }) => key, kind: 'long' },
  { title: 'HELD BY', text: calledAs, kind: 'long' },
  { title: 'PROCESS', text: ({ process }) => process, kind: 'long' },
  { title: 'MODE', text: ({ shares, holds }) => sharing(shares, holds) },
  { title: 'SINCE', text: ({ heldMs }) => shownMs(heldMs), kind: 'number' },
  { title: 'FENCE', text: ({ fence }) => String(fence), kind: 'number' },
];

/** Calls that wait. */
const WAITING: readonly Column<Pick<WaitedKey, 'waiting' | 'longestMs'>>[] = [
  { title: 'WAITING', text: ({ waiting }) => String(waiting ?? '-'), kind: 'number' },
  { title: 'LONGEST', text: ({ longestMs }) => (longestMs === null ? '-' : shownMs(longestMs)), kind: 'number' },
];

const KEYS: readonly Column<WaitedKey>[] = [
  { title: 'KEY', text: ({ key }) => key, kind: 'long' },
  ...WAITING,
  { title: 'QUEUED', text: ({ queued }) => String(queued ?? '-'), kind: 'number' },
];

/** The tables of a snapshot, the most important first. */
export function sectionsOf({ oldest, keys, names }: Snapshot): readonly Section[] {
  return [
    section('OLDEST LOCKS', OLDEST, oldest),
    section('MOST WAITED FOR', KEYS, keys),
    section('NAMES BY WAITING CALLS', [{ title: 'NAME', text: ({ name }) => name, kind: 'long' }, ...WAITING], names),
  ];
}

/** The lines of sections with so many rows each, from the row `first` on, or as far as a section goes. */
export function linesOf(sections: readonly Section[], rows: readonly number[], first: number, width: number): string[] {
  return rows.flatMap((most, at) => {
    const { title, count, table } = sections[at] as Section;
    const from = Math.max(0, Math.min(first, count - most));
    const to = Math.min(count, from + most);
    return [
      ...(at > 0 ? [''] : []),
      ...(count > 0 ? [`${title}, ${from + 1} to ${to} of ${count}`, ...table(from, most, width)] : [title, 'none']),
    ];
  });
}

function section<Row>(title: string, columns: readonly Column<Row>[], rows: readonly Row[]): Section {
  return { title, count: rows.length, table: (first, most, width) => tableOf(columns, rows.slice(first, first + most), width) };
}
