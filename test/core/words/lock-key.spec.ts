import { LockConfigurationError, LockKeyError } from '../../../lib/core/words/errors';
import { checkKey, checkKeys, checkPrefix, lockKey } from '../../../lib/core/words/lock-key';
import { saying } from '../../support/saying';

function refusalOf(run: () => unknown): LockKeyError {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(LockKeyError);
    return error as LockKeyError;
  }
  throw new Error('nothing was thrown');
}

test.each([' leading', 'trailing ', '\ttab', 'a b', 'é'.repeat(512)])('the key %p is taken as it is', (key) => {
  expect(checkKey(key, 'site')).toBe(key);
});

test.each([
  ['', /^site: the key is empty\. Name what is protected/],
  ['   ', /^site: the key is empty but for white space\. Name/],
  ['\t\n', /^site: the key is empty but for white space\. Name/],
  [7, /^site: a key is 7, not a string/],
])('the key %p is refused', (key, message) => {
  expect(refusalOf(() => checkKey(key, 'site')).detail).toMatch(message);
});

test('a key that is too long is told by its beginning and its length, and what to use instead', () => {
  const refusal = refusalOf(() => checkKey(`order:${'x'.repeat(100_000)}`, 'site'));
  expect(refusal.detail).toMatch(/^site: the key "order:x+…" has 100006 bytes; .*hash/);
  expect(refusal.detail.length).toBeLessThan(300);
  expect(refusal.key).toMatch(/^order:x{1,100}$/);
});

test.each([
  [7, /the key is 7\. Make sure/],
  [undefined, /the key is undefined/],
  [{ length: 1, 0: 'a' }, /the key is an object/],
  [[], /the key is an empty list/],
])('%p is no list of keys', (keys, message) => {
  expect(refusalOf(() => checkKeys(keys as never, 'site')).detail).toMatch(message);
});

/** A value that cannot be part of a key, and how it is told: never by its content. */
test.each([
  ['', 'an empty string'],
  [[], 'an empty list'],
  [['secret'], 'an array'],
  [{ id: 'secret' }, 'an object'],
  [Promise.resolve('secret'), 'a promise'],
  [() => 'secret', 'a function'],
  [null, 'null'],
  [undefined, 'undefined'],
  [Number.NaN, 'NaN'],
])('%p in lockKey is refused as what it is, with its place', (value, told) => {
  const refusal = refusalOf(() => lockKey`order:${7}:${value}:x`);
  expect(refusal.detail).toContain(`lockKey\`order:\${…}:\${…}:x\`: value 2 is ${told}, which cannot be part of a key.`);
  expect(refusal.detail).not.toContain('secret');
});

test('values of lockKey with nothing between them that shows where one ends are refused', () => {
  expect(refusalOf(() => lockKey`order:${'ab'}${'c'}`).detail).toBe(
    'lockKey`order:${…}${…}`: nothing shows where value 1 ends and value 2 begins, so that different values could share a key. ' +
      "Write a ':' between them.",
  );
  expect(refusalOf(() => lockKey`${1}:${2}-${3}`).detail).toContain('where value 2 ends and value 3 begins');
  expect(lockKey`${1}:${2}-:${3}{${4}`).toBe('1:2-:3{4');
});

test.each([[undefined], [null], ['order:7'], [['order:', '']]])('lockKey called with %p, as no tag, is refused', (given) => {
  expect(() => lockKey(given as never)).toThrow(saying(/^lockKey\(\) was called with .* Write it as a tag/));
});

test.each(['lock', 'app:lock', 'ü', 'x'.repeat(200)])('the prefix %p is taken', (prefix) => {
  expect(checkPrefix(prefix)).toBe(prefix);
});

test.each([7, null, '', 'x'.repeat(201), '{a}lock', 'lock{a}', 'lo ck', ' lock', 'lock ', '%', 'lock%'])(
  'the prefix %p is refused',
  (prefix) => {
    expect(() => checkPrefix(prefix)).toThrow(LockConfigurationError);
    expect(() => checkPrefix(prefix)).toThrow(/^LockModule: prefix is .*without braces/);
  },
);
