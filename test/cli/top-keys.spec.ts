import { Scroll } from '../../console/cli/top/scroll';
import { TopKeys } from '../../console/cli/top/top-keys';

let quits: number;
let keys: TopKeys;
let scroll: Scroll;

beforeEach(() => {
  quits = 0;
  scroll = new Scroll();
  keys = new TopKeys(() => quits++, scroll);
});

function type(text: string): void {
  Array.from(text).forEach((key) => keys.press(key));
}

test('q and Control-C quit, but a q in a filter is a letter', () => {
  type('/queue');
  expect({ quits, filter: keys.filter }).toEqual({ quits: 0, filter: 'queue' });
  type('\rq\u0003');
  expect(quits).toBe(2);
});

test('a filter is typed, corrected, kept by Enter, and dropped by Escape', () => {
  type('/balanec\u007f\u007fce\r');
  expect(keys.filter).toBe('balance');
  expect(keys.line).toContain('now "balance"');
  type('/x\u001b');
  expect(keys.filter).toBe('');
  expect(keys.line).toMatch(/^q: quit, \/: filter, arrows/);
});

test('a key that scrolls, or one of no use, is no part of a filter', () => {
  type('/a');
  ['down', '\u001bOP', '\t', 'pagedown'].forEach((key) => keys.press(key));
  type('b\r');
  expect(keys.filter).toBe('ab');
  expect(scroll.fit(10, 1)).toBe(2);
});

test('the last row stays in sight where rows become fewer', () => {
  scroll.fit(50, 10);
  keys.press('end');
  expect(scroll.fit(50, 10)).toBe(50);
  expect(scroll.fit(7, 10)).toBe(7);
  keys.press('pageup');
  expect(scroll.fit(7, 10)).toBe(0);
});
