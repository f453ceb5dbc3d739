import { short } from './table.mjs';

/** The figures in a column of a store, from its lines by row. */
const FIGURES = [
  { title: 'pair', of: (lines) => withUnit(lines.get('stores pair')) },
  { title: '  its floor', of: (lines) => withUnit(lines.get('stores pair floor')) },
  { title: '  ratio', of: (lines) => ratio(lines.get('stores pair')) },
  { title: '  round trips', of: (lines) => plain(lines.get('stores pair trips')) },
  { title: 'parallel: 64 callers, keys of their own', of: (lines) => withUnit(lines.get('stores parallel')) },
  { title: '  its floor', of: (lines) => withUnit(lines.get('stores parallel floor')) },
  { title: '  ratio', of: (lines) => ratio(lines.get('stores parallel')) },
  { title: '  round trips for each', of: (lines) => plain(lines.get('stores parallel trips')) },
  { title: 'hot: 64 callers of one process', of: (lines) => withUnit(lines.get('stores hot')) },
  { title: '  its floor, for one caller', of: (lines) => withUnit(lines.get('stores hot floor')) },
  { title: '  ratio', of: (lines) => ratio(lines.get('stores hot')) },
  { title: '  round trips for each', of: (lines) => plain(lines.get('stores hot trips')) },
  { title: 'fleet: callers of four processes', of: (lines) => withUnit(lines.get('stores fleet')) },
  { title: '  ratio to their sections', of: (lines) => ratio(lines.get('stores fleet')) },
  { title: '  round trips for each', of: (lines) => plain(lines.get('stores fleet trips')) },
  { title: '  statements for each', of: (lines) => judged(lines.get('stores fleet statements')) },
  { title: 'hand-over to another process', of: (lines) => judged(lines.get('stores hand-over')) },
  { title: '  of 8 keys of four processes, in ms', of: (lines) => plain(lines.get('stores several keys')) },
  { title: '  the longest of them', of: (lines) => plain(lines.get('stores several keys longest')) },
  { title: 'statements a second, waiting for 1 key', of: (lines) => judged(lines.get('stores waiting 1')) },
  { title: '  for 100 keys', of: (lines) => judged(lines.get('stores waiting 100')) },
  { title: '  for 1,000 keys', of: (lines) => judged(lines.get('stores waiting 1000')) },
  { title: '  idle', of: (lines) => judged(lines.get('stores idle')) },
  { title: '', of: (lines) => notesOf([...lines.values()]) },
];

/** The rows of the stores as text, with a column for each; nothing where they were not measured. */
export function storesTable(lines) {
  const names = [...new Set(lines.map(({ subject }) => subject))];
  const columns = names.map((name) => new Map(lines.filter(({ subject }) => subject === name).map((line) => [line.row, line])));
  const cells = [['stores', ...names], ...FIGURES.map(({ title, of }) => [title].concat(columns.map(of)))];
  const widths = cells[0].map((_, column) => Math.max(...cells.map((row) => row[column].length)));
  const rows = cells.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]))
      .join('  ')
      .trimEnd(),
  );
  // The first store that has it names it.
  const floors = new Map(
    lines
      .filter(({ row }) => row === 'stores pair floor')
      .toReversed()
      .map(({ subject, note }) => [note, subject]),
  );
  return [...rows.filter(Boolean), '', ...[...floors].map(([note, subject]) => `floor on ${subject}: ${note}`)].join('\n');
}

/** Not all rows are measured for each store. */
function withUnit(line) {
  return line ? `${short(line.value)} ${line.unit}` : '';
}

function plain(line) {
  return line ? short(line.value) : '';
}

function judged(line) {
  return line ? `${short(line.value)} ${verdict(line)}` : '';
}

function ratio(line) {
  return line ? `${short(line.ratio)} × ${verdict(line)}`.trimEnd() : '';
}

function verdict({ target, met }) {
  return target ? `(${target} ${met ? 'met' : 'MISSED'})` : '';
}

/** Callers that failed. */
function notesOf(lines) {
  return lines
    .filter(({ row, note }) => note && !row.endsWith(' floor'))
    .map(({ note }) => note)
    .join('; ');
}
