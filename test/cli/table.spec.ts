import { shownMs } from '../../console/cli/age';
import { shortened, tableOf, wrapped, type Column } from '../../console/cli/table';

const COLUMNS: readonly Column<{ key: string; count: number }>[] = [
  { title: 'KEY', text: ({ key }) => key, kind: 'long' },
  { title: 'COUNT', text: ({ count }) => String(count), kind: 'number' },
];

test('columns are aligned, numbers at the right', () => {
  const rows = [
    { key: 'a', count: 7 },
    { key: 'balance:42', count: 1_234 },
  ];
  expect(tableOf(COLUMNS, rows, Infinity)).toEqual(['KEY         COUNT', 'a               7', 'balance:42   1234']);
});

test('long texts are shortened to the width, in their middle', () => {
  const key = `account:${'x'.repeat(100)}:42`;
  const lines = tableOf(COLUMNS, [{ key, count: 1 }], 30);
  expect(lines.map((line) => line.length)).toEqual([30, 30]);
  expect(lines[1]).toMatch(/^account:x+…x+:42 +1$/);
  expect(shortened('abc', 2)).toBe('a…');
});

test('a sentence is wrapped between its words, and a word that is too long stays whole', () => {
  expect(wrapped('3 processes answer. See: list.', 12)).toEqual(['3 processes', 'answer. See:', 'list.']);
  expect(wrapped('a bcdefgh i', 4)).toEqual(['a', 'bcdefgh', 'i']);
  expect(wrapped('a b', Infinity)).toEqual(['a b']);
});

test('control characters take no line and move no cursor', () => {
  expect(tableOf(COLUMNS, [{ key: '\u001b[2J\n', count: 1 }], Infinity)[1]).toBe(String.raw`\u001b[2J\u000a      1`);
});

test.each([
  [0, '0 ms'],
  [999.4, '999 ms'],
  [8_249, '8.2 s'],
  [59_999, '59.9 s'],
  [3_599_999, '59 min 59 s'],
  [11_100_000, '3 h 5 min'],
  [90_000_000, '1 d 1 h'],
  [Infinity, '-'],
])('%d ms are shown as %s', (ms, text) => {
  expect(shownMs(ms)).toBe(text);
});
