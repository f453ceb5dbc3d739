import { TopKeys } from '../../console/cli/top-keys';

let quits: number;
let keys: TopKeys;

beforeEach(() => {
  quits = 0;
  keys = new TopKeys(() => quits++);
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
  expect(keys.line).toBe('q: quit, /: filter');
});
