import { isClass, printable, printableJson } from '../../../lib/core/words/shown';

test('a class is told from a function that only speaks of one', () => {
  expect(isClass(class Account {})).toBe(true);
  expect(isClass(() => 'a class of its own')).toBe(false);
  expect(isClass(function classify() {})).toBe(false);
});

test('what a terminal would obey is shown as an escape, and nothing else is', () => {
  expect(printable('a\u001b[2Jb\nc')).toBe(String.raw`a\u001b[2Jb\u000ac`);
  expect(printable('left \u202e right \u2028')).toBe(String.raw`left \u202e right \u2028`);
  expect(printable('Grüße, 世界 🙂')).toBe('Grüße, 世界 🙂');
});

test('in JSON each escape is one that JSON knows', () => {
  const text = 'a\u001b\u{e0067}\u202eb\ud83c 🙂 \\u{e0067}';
  const json = printableJson(JSON.stringify(text));
  expect(json).toContain(String.raw`a\u001b\udb40\udc67\u202eb`);
  expect(JSON.parse(json)).toBe(text);
});
