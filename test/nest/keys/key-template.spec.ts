import { compileKeyTemplate } from '../../../lib/nest/keys/key-template';
import { LockConfigurationError, LockKeyError, LockNotAcquiredError, type LockError } from '../../../lib/core/words/errors';
import { checkKey, lockKey } from '../../../lib/core/words/lock-key';
import { ParameterNames } from '../../../lib/nest/keys/parameter-names';
import { saying } from '../../support/saying';

const GIVEN = new Map<number, string>();
const NAMES = {
  given: GIVEN,
  source: new ParameterNames(function credit(customerId: string, dto: { id: string }): unknown {
    return [customerId, dto];
  }),
};

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
    ['x:<dto.$id>', ['', { $id: 12 }], 'x:12'],
    ['x::<dto.id>::customerId', ['', { id: 12 }], 'x::12::customerId'],
    ['{dto}:<dto.id>', ['', { id: 12 }], '{dto}:12'],
  ])('%s with %p is %s', (template, args, expected) => {
    expect(keyOf(template, ...args)).toBe(expected);
  });

  test('two argument lists never give one key', () => {
    expect(keyOf('<0>:<1>', 'a:b', 'c')).not.toBe(keyOf('<0>:<1>', 'a', 'b:c'));
    expect(keyOf('<0>', '%3A')).not.toBe(keyOf('<0>', ':'));
    expect(keyOf('<0>', '{a}\n')).toBe('%7Ba%7D%0A');
    // Also where the text between two values could be a part of either.
    for (const between of ['a:b', '-:', '}{', '%:']) {
      const keys = [
        ['1', '2'],
        [`1${between}2`, '3'],
        ['1', `2${between}3`],
        ['1a', 'b2'],
        ['1', '3A2'],
        ['1:', '2'],
      ].map((args) => keyOf(`x<0>${between}<1>y`, ...args));
      expect(new Set(keys).size).toBe(keys.length);
    }
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
    ['a:{ dto.id }', /has \{ dto\.id \}, which is no placeholder/],
    ['a:{{dto.id}}', /has \{\{dto\.id\}\}, which is no placeholder/],
    ['a:{{other}}:<customerId>', /has \{\{other\}\}, which is no placeholder/],
    ['a:{0}', /has \{0\}, which is no placeholder/],
    [
      'a:customerId',
      /has :customerId, which is no placeholder: every call would lock the same key\. Write it as <name>\. Where .*function/,
    ],
    ['/dto/:customerId/<dto.id>', /has :customerId, which is no placeholder/],
    ['a[customerId]:<dto.id>', /has \[customerId\], which is no placeholder: it would be the same text in every key/],
    ['a:<0><1>', /nothing in the key template 'a:<0><1>' shows where one value ends .* share a key\. Write a ':' between placeholders/],
    ['<customerId>-<dto.id>', /nothing in the key template/],
    ['<customerId>%<dto.id>', /nothing in the key template/],
    ['a:<0>:<1>/<dto.id>', /nothing in the key template/],
    ['a:<2>', /names <2>, but the method has 2 parameters, and positions start at 0\. Correct the position/],
    ['a:<2.id>', /names <2\.id>, but the method has 2 parameters/],
    ['a:<custmerId>', /'a:<custmerId>' names <custmerId>, but the parameters of this method are: customerId, dto\./],
  ])('%p is refused when the class is loaded', (template, message) => {
    const error = thrownBy(() => compileKeyTemplate(template, NAMES, 'Balance.credit'));
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect(error.message).toMatch(message);
    expect(error.message).toMatch(/^Balance\.credit: /);
  });

  test.each([
    ['account:<customerId>:dto', ['7', {}], 'account:7:dto'],
    ['{billing}:<customerId>', ['7', {}], '{billing}:7'],
    ['job:report', ['7', {}], 'job:report'],
    ['Billing::close', ['7', {}], 'Billing::close'],
  ])('%s has words that only look like placeholders', (template, args, expected) => {
    expect(keyOf(template, ...args)).toBe(expected);
  });

  test.each([
    ['a rest parameter', async (...all: string[]): Promise<unknown> => all],
    [
      'arguments',
      function wrapper(): unknown {
        // eslint-disable-next-line prefer-rest-params -- as decorators of others have it
        return arguments;
      },
    ],
    ['a hidden source', new Proxy(async (): Promise<void> => {}, {})],
  ])('takes every position of a method with %s', (_, method) => {
    const source = new ParameterNames(method as () => unknown);
    expect(compileKeyTemplate('a:<3>', { given: GIVEN, source }, 'Balance.credit')(['', '', '', 'x'])).toBe('a:x');
  });

  test('does not trust a one-letter parameter name, but one that @LockKey gave', () => {
    const source = new ParameterNames(function credit(a: string, longName: string): unknown {
      return [a, longName];
    });
    expect(() => compileKeyTemplate('<a>', { given: GIVEN, source }, 'Balance.credit')).toThrow(
      /<a>\. Put @LockKey\('a'\) before the parameter, or write its position, such as <0> .*so short a name may be one that a minifier gave/,
    );
    expect(compileKeyTemplate('<a>', { given: new Map([[1, 'a']]), source }, 'Balance.credit')(['x', 'y'])).toBe('y');
    expect(compileKeyTemplate('<0>', { given: GIVEN, source }, 'Balance.credit')(['x', 'y'])).toBe('x');
  });

  describe('names what a pattern of a parameter binds', () => {
    interface Credit {
      readonly customerId: string;
      readonly order?: { readonly id?: string; readonly lines?: readonly string[] };
    }
    const key = 'order';
    const handler = {
      execute: async (
        { customerId, order: { id: orderId = 'none', lines: [first = '', ...others] = [] } = {}, [key]: again, ...rest }: Credit,
        tenant = 'acme',
        ...more: string[]
      ): Promise<unknown> => [customerId, orderId, first, others, again, rest, tenant, more],
    };
    const source = new ParameterNames(handler.execute);
    const keyOfCredit = (template: string, ...args: unknown[]): string =>
      compileKeyTemplate(template, { given: GIVEN, source }, 'Credits.execute')(args);
    const credit: Credit = { customerId: '7', order: { id: '8', lines: ['a'] } };

    test.each([
      ['balance:<customerId>', 'balance:7'],
      ['order:<orderId>', 'order:8'],
      ['order:<tenant>:<customerId>:<orderId.length>', 'order:shop:7:1'],
      ['order:<0.order.id>', 'order:8'],
    ])('%s is %s', (template, expected) => {
      expect(keyOfCredit(template, credit, 'shop')).toBe(expected);
    });

    test.each([
      [
        'first',
        /<first>, which an array pattern binds: .* Write where it is in the arguments, such as <0\.order\.lines\.0>, or use a function/,
      ],
      ['others', /<others>, which a rest element binds: .* such as <0\.order\.lines\.1>, .* key: \(…\) => lockKey`order:\$\{others\}`\.$/],
      ['again', /<again>, which a computed key binds: .* such as <0\.name>, or use a function/],
      ['rest', /<rest>, which a rest element binds: .* such as <0\.name>,/],
      ['more', /<more>, which a rest element binds: .* such as <2>,/],
      [
        'custmerId',
        /the parameters of this method are: customerId, orderId, first, \.\.\.others, again, \.\.\.rest, tenant, \.\.\.more\. Correct/,
      ],
      ['order', /the parameters of this method are: customerId/],
    ])('but not <%s>', (name, message) => {
      expect(() => keyOfCredit(`order:<${name}>`)).toThrow(LockConfigurationError);
      expect(() => keyOfCredit(`order:<${name}>`)).toThrow(message);
    });

    test.each(['order:{customerId}', 'order::orderId', 'order:<tenant>:{first}'])('%s is of another syntax', (template) => {
      expect(() => keyOfCredit(template)).toThrow(/which is no placeholder/);
    });

    test.each([
      ['order:<orderId>', [{ customerId: '7' }, 'shop']],
      ['order:<orderId>', [{ customerId: '7', order: {} }, 'shop']],
      ['order:<0.order.id>', [{ customerId: '7', order: {} }, 'shop']],
      ['order:<tenant>', [credit]],
      ['order:<1>', [credit]],
      ['order:<1.length>', [credit]],
    ])('%s of %p says that its default value is not seen', (template, args) => {
      const error = thrownBy(() => keyOfCredit(template, ...args));
      expect(error).toBeInstanceOf(LockKeyError);
      expect((error as LockError).detail).toMatch(
        /^Credits\.execute: the key 'order:<(.*)>': <\1> is undefined, and its default value is known only inside the method\. Pass the value, or .* function/,
      );
    });

    test('a missing value without a default is refused as undefined, and null as null', () => {
      expect(() => keyOfCredit('order:<customerId>', {})).toThrow(saying(/<customerId> is undefined, which cannot be part/));
      expect(() => keyOfCredit('order:<customerId>')).toThrow(saying(/<customerId> is undefined, which cannot be part/));
      expect(() => keyOfCredit('order:<orderId>', { order: null })).toThrow(saying(/<orderId> is null, which cannot be part/));
    });

    test('a name that is too short to be certain is refused with its path as the cure', () => {
      const short = new ParameterNames(function execute({ order: id }: { order: string }, to: string): unknown {
        return [id, to];
      });
      expect(() => compileKeyTemplate('a:<id>', { given: GIVEN, source: short }, 'Credits.execute')).toThrow(
        /<id>\. Write the position of the parameter and the path into it, such as <0\.order>: .*so short a name may be/,
      );
    });
  });

  test('says that the names are hidden where it sees none', () => {
    const source = new ParameterNames(new Proxy(async (): Promise<void> => {}, {}));
    expect(() => compileKeyTemplate('<id>', { given: GIVEN, source }, 'Balance.credit')).toThrow(
      /hidden: it has none, or another decorator wrapped it\. Use @LockKey\(\)/,
    );
  });
});

describe('control characters', () => {
  test('of a key reach no message raw', () => {
    const key = 'a\u001b[2J\r\nb\u202ec\u2028d\u009b';
    const shown = String.raw`a\u001b[2J\u000d\u000ab\u202ec\u2028d\u009b`;
    for (const error of [
      thrownBy(() => compileKeyTemplate(`${key}<`, NAMES, 'Balance.credit')),
      thrownBy(() => checkKey(key.repeat(200), 'LockService.withLock')),
      new LockNotAcquiredError(`Lock "${key}" was not acquired.`, key, { reason: 'busy', waitedMs: 0 }),
    ]) {
      expect((error as LockError).detail).toContain(shown);
      // eslint-disable-next-line no-control-regex -- control characters are what it looks for
      expect(error.stack).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e\u2028]/);
    }
    expect(new LockNotAcquiredError('', key, { reason: 'busy', waitedMs: 0 }).key).toBe(key);
  });
});
