import { Decimal as PrismaDecimal } from '@prisma/client-runtime-utils';
import { Decimal } from 'decimal.js';
import { Temporal } from 'temporal-polyfill';
import { keyOf, refusalOf } from './keys-of-values';

describe('an id that is an object is the text or number that it has in JSON', () => {
  test.each([
    ["Prisma's Decimal", new PrismaDecimal('12.50'), '12.5'],
    ['a Decimal of decimal.js', new Decimal('9007199254740993'), '9007199254740993'],
    ['a Date', new Date(0), '1970-01-01T00%3A00%3A00.000Z'],
    ['a URL', new URL('https://shop.test/7'), 'https%3A//shop.test/7'],
    ['a PlainDate of Temporal', Temporal.PlainDate.from('2026-11-29'), '2026-11-29'],
    ['an Instant of Temporal', Temporal.Instant.from('1970-01-01T00:00:00Z'), '1970-01-01T00%3A00%3A00Z'],
    ['a value of somebody else as a number', { toJSON: () => 7.5 }, '7.5'],
  ])('%s', (_, id, text) => {
    expect(keyOf(id)).toBe(`order:${text}`);
  });

  test('so that it locks with its text, and not with another', () => {
    const id = new Decimal('9007199254740993');
    expect(keyOf(id)).toBe(keyOf(String(id)));
    expect(keyOf(id)).not.toBe(keyOf(new Decimal('9007199254740992')));
  });
});

describe('an object without a text or number in JSON is refused, with what to write instead', () => {
  test.each([
    ['an object', { id: 'secret' }, 'an object'],
    ['a Map', new Map([['secret', 1]]), 'an object'],
    ['a list', ['secret'], 'an array'],
    ['a Buffer', Buffer.from('secret'), 'an object'],
    ['one that is a Date in JSON', { toJSON: (): unknown => new Date(0) }, 'an object'],
  ])('%s', (_, value, told) => {
    const { detail } = refusalOf(value);
    expect(detail).toContain(`<orderId> is ${told}, which cannot be part of a key. `);
    expect(detail).toMatch(/key: \(id\) => lockKey`order:\$\{id\.…\}`\.$/);
    expect(detail).not.toContain('secret');
  });

  test.each([
    [null, /toJSON\(\) of <orderId> is null, which cannot/],
    ['', /toJSON\(\) of <orderId> is an empty string, which cannot/],
    [Number.NaN, /toJSON\(\) of <orderId> is NaN, which cannot/],
    [2 ** 60, /toJSON\(\) of <orderId> is 1152921504606847000, but beyond 2\^53/],
  ])('one that is %p there', (json, told) => {
    expect(refusalOf({ toJSON: () => json }).detail).toMatch(told);
  });

  test('an invalid Date', () => {
    expect(refusalOf(new Date(Number.NaN)).detail).toMatch(/toJSON\(\) of <orderId> is null, which cannot/);
  });

  test('one whose toJSON() throws, with what it threw as the cause', () => {
    const cause = new Error('not loaded');
    const toJSON = (): never => {
      throw cause;
    };
    const getter = Object.defineProperty({}, 'toJSON', { get: toJSON });
    for (const value of [{ toJSON }, getter]) {
      const refusal = refusalOf(value);
      expect(refusal.detail).toMatch(/: toJSON\(\) of <orderId> threw an error\. .*lockKey`order:\$\{id\.…\}`/);
      expect(refusal.cause).toBe(cause);
    }
  });
});

describe('a number', () => {
  test.each([7, -7, 0, 0.1, -1e-7, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER])('%p is its text', (value) => {
    expect(keyOf(value)).toBe(`order:${value}`);
  });

  test.each([2 ** 53, -(2 ** 53), JSON.parse('9007199254740993') as number, 1e21, Number.MAX_VALUE])(
    '%p is refused, since several ids are the same number there',
    (value) => {
      expect(refusalOf(value).detail).toMatch(
        /^Orders\.ship: the key 'order:<orderId>': <orderId> is -?\d.*, but beyond 2\^53 several ids are one number\. Pass it as text or bigint\.$/,
      );
    },
  );

  test('as large as that is another key for each id, as a text and as a bigint', () => {
    expect(keyOf('9007199254740993')).toBe(keyOf(9_007_199_254_740_993n));
    expect(keyOf(9_007_199_254_740_993n)).not.toBe(keyOf(9_007_199_254_740_992n));
  });
});
