const COLUMNS = ['row', 'subject', 'value', 'ratio', 'target', '', 'note'];

/** The results as text. */
export function table(lines) {
  const cells = [COLUMNS, ...lines.map(cellsOf)];
  const widths = COLUMNS.map((_, column) => Math.max(...cells.map((row) => row[column].length)));
  return cells
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column]))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

function cellsOf({ row, subject, value, unit, ratio, of, spread, target, met, note }, index, lines) {
  return [
    lines[index - 1]?.row === row ? '' : row,
    subject,
    `${short(value)} ${unit}${between(spread.value)}`,
    ratio === null ? '' : `${short(ratio)} × ${of}${ratio === 1 ? '' : between(spread.ratio)}`,
    target ?? '',
    met === null ? '' : met ? 'met' : 'MISSED',
    note ?? '',
  ];
}

function between(quartiles) {
  return quartiles ? ` (${quartiles.map(short).join('–')})` : '';
}

/** Three digits that count. */
export function short(value) {
  return value >= 100 || Number.isInteger(value) ? value.toFixed(0) : value.toPrecision(3);
}
