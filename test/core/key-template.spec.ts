import { compileKeyTemplate } from '../../lib/core/key-template';
import { LockConfigurationError, LockKeyError, type LockError } from '../../lib/core/errors';
import { lockKey } from '../../lib/core/lock-key';
import { parameterNames } from '../../lib/core/parameter-names';
import { saying } from '../support/saying';

const NAMES = { given: new Map<number, string>(), source: ['customerId', 'dto'] };

function keyOf(template: string, ...args: unknown[]): string {
  return compileKeyTemplate(template, NAMES, 'Balance.credit')(args);
}

function thrownBy(run: () => unknown): Error {
  try {
    run();
  } catch (error) {
    return error as Error;
  }
  throw new Error('nothing was thrown');
}

describe('a key template', () => {
  test.each([
    ['balance:<customerId>', ['42'], 'balance:42'],
    ['<0>:<1.id>', ['a', { id: 7n }], 'a:7'],
    ['x:<dto.account.number>', ['', { account: { number: 12 } }], 'x:12'],
    ['flag:<customerId>', [false], 'flag:false'],
    ['no placeholder', [], 'no placeholder'],
  ])('%s with %p is %s', (template, args, expected) => {
    expect(keyOf(template, ...args)).toBe(expected);
  });

  test('two argument lists never give one key', () => {
    expect(keyOf('<0>:<1>', 'a:b', 'c')).not.toBe(keyOf('<0>:<1>', 'a', 'b:c'));
    expect(keyOf('<0>', '%3A')).not.toBe(keyOf('<0>', ':'));
    expect(keyOf('<0>', '{a}\n')).toBe('%7Ba%7D%0A');
  });

  test('agrees with lockKey', () => {
    expect(lockKey`balance:${'a:b'}`).toBe(keyOf('balance:<customerId>', 'a:b'));
  });

  test.each([[undefined], [null], [Number.NaN], [Infinity], [''], [{}], [['1']], [Symbol('s')]])(
    'refuses %p as a value, naming the method and the placeholder',
    (value) => {
      const error = thrownBy(() => keyOf('balance:<customerId>', value));
      expect(error).toBeInstanceOf(LockKeyError);
      expect((error as LockError).detail).toMatch(/^Balance\.credit: the key 'balance:<customerId>': <customerId> is .*Make sure/);
    },
  );

  test('refuses a path through nothing', () => {
    expect(() => keyOf('<dto.a.b>', '', {})).toThrow(LockKeyError);
    expect(() => keyOf('<dto.a>', '', null)).toThrow(LockKeyError);
  });

  test('refuses a key over 1 KiB, counted in bytes', () => {
    expect(keyOf('<customerId>', 'x'.repeat(1024))).toHaveLength(1024);
    expect(() => keyOf('<customerId>', 'x'.repeat(1025))).toThrow(saying(/1025 bytes; at most 1024/));
    expect(() => keyOf('<customerId>', 'é'.repeat(513))).toThrow(saying(/1026 bytes/));
    expect(() => lockKey`${'é'.repeat(513)}`).toThrow(LockKeyError);
  });

  test('refuses half a surrogate pair, of which the server would make the same key as of any other', () => {
    expect(() => keyOf('<customerId>', '\ud800')).toThrow(saying(/surrogate/));
  });

  test.each([
    ['', /Balance\.credit: the key template is empty/],
    ['a:<>', /empty placeholder <>/],
    ['a:<dto.>', /empty placeholder <dto\.>/],
    ['a:<.id>', /empty placeholder/],
    ['a:<customerId', /without its pair/],
    ['a:customerId>', /without its pair/],
    ['a:<<customerId>>', /without its pair/],
    ['a:${customerId}', /has \$\{customerId\}, which is no placeholder: every call would lock the same key\. Write it as <name>/],
    ['a:{customerId}', /has \{customerId\}, which is no placeholder/],
    ['a:<custmerId>', /'a:<custmerId>' names <custmerId>, but the parameters of this method are: customerId, dto\./],
  ])('%p is refused when the class is loaded', (template, message) => {
    const error = thrownBy(() => compileKeyTemplate(template, NAMES, 'Balance.credit'));
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect(error.message).toMatch(message);
    expect(error.message).toMatch(/^Balance\.credit: /);
  });

  test('does not trust a one-letter parameter name, but one that @LockKey gave', () => {
    const source = ['a', 'b'];
    expect(() => compileKeyTemplate('<a>', { given: new Map(), source }, 'Balance.credit')).toThrow(/one-letter .* minified.*@LockKey/);
    expect(compileKeyTemplate('<a>', { given: new Map([[1, 'a']]), source }, 'Balance.credit')(['x', 'y'])).toBe('y');
    expect(compileKeyTemplate('<0>', { given: new Map(), source }, 'Balance.credit')(['x', 'y'])).toBe('x');
  });

  test('says that the names are hidden where it sees none', () => {
    expect(() => compileKeyTemplate('<id>', { given: new Map(), source: [] }, 'Balance.credit')).toThrow(
      /hidden: it has none, or another decorator wrapped it\. Use @LockKey\(\)/,
    );
  });
});

describe('parameter names', () => {
  class Sample {
    plain(one: string, two = ', three', ...rest: unknown[]): unknown {
      return [one, two, rest];
    }
    async nested({ a, b }: { a: number; b: number }, list = [(1 + 2) * 3, ')'], last = { x: 1 }): Promise<unknown> {
      return [a, b, list, last];
    }
    // prettier-ignore
    async *commented(/* (first, */ one: string, // second)
      two: string): AsyncGenerator { yield one + two; }
    ['computed(name)'](one: string): string {
      return one;
    }
  }
  const { prototype } = Sample;

  test.each([
    ['plain', prototype.plain, ['one', 'two', '...rest']],
    ['destructured', prototype.nested, ['', 'list', 'last']],
    ['commented', prototype.commented, ['one', 'two']],
    ['computed', prototype['computed(name)'], ['one']],
    ['none', (): number => 1, []],
    ['native', Array.prototype.push, []],
    ['bound', prototype.plain.bind(null), []],
  ])('%s', (_, method, expected) => {
    expect(parameterNames(method as () => unknown)).toEqual(expected);
  });
});
