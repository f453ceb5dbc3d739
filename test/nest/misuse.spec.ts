import 'reflect-metadata';
import { Injectable, Module, Scope } from '@nestjs/common';
import { REQUEST } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import {
  DistributedLock,
  LockConfigurationError,
  LockKeyError,
  LockKey,
  LockModule,
  LockService,
  MemoryLockStore,
  RedisLockStore,
  type LockError,
} from 'nestjs-distributed-lock';
import { saying } from '../support/saying';
import type { DistributedLockOptions, LockModuleOptions } from 'nestjs-distributed-lock';

/** Decorates `Balance.credit` as a class that is loaded would, without its types. */
function load(
  options: unknown,
  method: Function = async function credit(customerId: string, amount: number) {
    return [customerId, amount];
  },
): void {
  class Balance {}
  const descriptor = { value: method, configurable: true, writable: true };
  DistributedLock(options as DistributedLockOptions)(Balance.prototype, 'credit', descriptor as never);
}

function messageOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(LockConfigurationError);
    return (error as Error).message;
  }
  throw new Error('nothing was thrown');
}

async function rejectionOf(call: Promise<unknown>): Promise<Error> {
  return call.then(
    () => Promise.reject(new Error('nothing was thrown')),
    (error: Error) => error,
  );
}

async function services(options: LockModuleOptions): Promise<LockService> {
  const module = await Test.createTestingModule({ imports: [LockModule.forRoot(options)] }).compile();
  return module.get(LockService);
}

describe('when the class is loaded', () => {
  test.each([
    [
      'an unknown placeholder',
      'balance:<custmer>',
      /<custmer>, but the parameters of this method are: customerId, amount\. Correct the name/,
    ],
    ['an empty template', '', /the key template is empty\. Name what is protected/],
    ['no key', {}, /has no key: the option key is undefined\. Pass a template/],
    ['a key that is neither', { key: 7 }, /has no key/],
    ['a zero ttl', { key: 'k', ttl: 0 }, /ttl is 0, which is not a duration from 100 to \d+ ms\. Pass milliseconds/],
    ['a ttl below 100 ms', { key: 'k', ttl: 99 }, /ttl is 99/],
    ['a negative ttl', { key: 'k', ttl: -5 }, /ttl is -5/],
    ['an endless ttl', { key: 'k', ttl: Infinity }, /ttl is Infinity/],
    ['a ttl in parsecs', { key: 'k', ttl: '5 parsecs' }, /ttl is '5 parsecs'/],
    ['an empty ttl', { key: 'k', ttl: '' }, /ttl is ''/],
    ['a ttl of NaN', { key: 'k', ttl: Number.NaN }, /ttl is NaN/],
    ['a null ttl', { key: 'k', ttl: null }, /ttl is null/],
    ['a ttl longer than a timer', { key: 'k', ttl: '30d' }, /ttl is '30d'/],
    ['a negative wait', { key: 'k', wait: '-1s' }, /wait is '-1s', which is not a duration from 0/],
    ['an endless wait', { key: 'k', wait: Infinity }, /wait is Infinity/],
    ['a wait in parsecs', { key: 'k', wait: '5 parsecs' }, /wait is '5 parsecs'/],
    ['a zero maxHold', { key: 'k', maxHold: 0 }, /maxHold is 0/],
    ['a negative minHold', { key: 'k', minHold: -1 }, /minHold is -1/],
    ['no options', undefined, /has no key: what was passed is undefined\. Pass a template/],
    ['a renew that is no boolean', { key: 'k', renew: 'no' }, /renew is 'no'\. Use true or false/],
    ['an unknown reentry', { key: 'k', reentry: 'contxt' }, /reentry is 'contxt'/],
    ['a signal that is none', { key: 'k', signal: {} }, /signal is not an AbortSignal/],
    ['an unknown kind of result', { key: 'k', returns: 'stream' }, /returns is 'stream'\. Use one of 'promise', 'observable', 'generator'/],
    ['an unknown onBusy', { key: 'k', onBusy: 'ignore' }, /onBusy is 'ignore'\. Use 'throw', 'skip' or a function/],
  ])('%s is refused, naming the class and the method', (_, options, message) => {
    const thrown = messageOf(() => load(options));
    expect(thrown).toMatch(/^Balance\.credit: /);
    expect(thrown).toMatch(message);
  });

  test('a one-letter parameter name is not trusted, and a hidden one not guessed', () => {
    const minified = async (e: string): Promise<string> => e;
    expect(messageOf(() => load('balance:<e>', minified))).toMatch(
      /<e>\. Put @LockKey\('e'\) before the parameter, or write its position, such as <0> for the first one: .* may be one that a minifier gave/,
    );
    const wrapped = async (...args: unknown[]): Promise<unknown> => args;
    expect(messageOf(() => load('balance:<customerId>', wrapped))).toMatch(/are: \.\.\.args\. .*another decorator wrapped the method/);
    expect(messageOf(() => load('balance:<customerId>', Math.max))).toMatch(/hidden.*a position such as <0>, or a function/);
  });

  test('what is no instance method is refused', () => {
    class Balance {
      static async credit(): Promise<void> {}
    }
    const descriptor = Object.getOwnPropertyDescriptor(Balance, 'credit') as never;
    expect(messageOf(() => DistributedLock('k')(Balance as never, 'credit', descriptor))).toMatch(
      /^Balance\.credit: .*does not work on static methods.*withLock/,
    );
    expect(messageOf(() => DistributedLock('k')(Balance.prototype, 'total', undefined as never))).toMatch(/^Balance\.total: /);
  });

  test('@LockKey needs a name that a template can hold', () => {
    for (const name of ['', 'a.b', '<a>', 'a b', undefined as never]) {
      expect(messageOf(() => LockKey(name)({}, 'method', 0))).toMatch(/use it on a parameter of an instance method, with a name/);
    }
  });
});

test.each([
  ['a class', class Secret {}, /^RedisLockStore was given the class Secret\. Pass a client of ioredis or iovalkey/],
  [
    'a function',
    () => 'secret',
    /^(?!.*secret)RedisLockStore was given the function without a name\. Pass a client of ioredis or iovalkey/,
  ],
])('%s in place of a Redis client is refused, and its source is not repeated', (_, source, message) => {
  expect(messageOf(() => new RedisLockStore(source as never))).toMatch(message);
});

test.each(['redis://:se#cret@host:6379', 'redis://:se/cret@host', 'redis://:se?cret@host', 'redis://:se%cret@host', 'redis://[secret'])(
  'the URL %s, which cannot be read, is refused at once, and not repeated',
  (url) => {
    const refusal = messageOf(() => new RedisLockStore(url));
    expect(refusal).toMatch(/^RedisLockStore was given a URL that cannot be read: user name and password .* encodeURIComponent\(\)/);
    expect(refusal).not.toMatch(/cret/);
  },
);

describe('at bootstrap', () => {
  test.each([
    ['no options', undefined, /the store 'default' is undefined, not a lock store\. Pass new RedisLockStore/],
    [
      'a mistyped option',
      { store: new MemoryLockStore(), maxWaiter: 5 },
      /there is no option 'maxWaiter'\. Did you mean 'maxWaiters'\? The options are: store,/,
    ],
    [
      'an option that is like none',
      { store: new MemoryLockStore(), colour: 5 },
      /there is no option 'colour'\. The options are: store, stores, ttl,/,
    ],
    ['no store', {}, /the store 'default' is undefined, not a lock store/],
    ['something else as a store', { store: new Map() }, /an object of class Map, not a lock store/],
    ['a class as a store', { store: MemoryLockStore }, /is the class MemoryLockStore, not a lock store/],
    [
      'an address as a store, whose password is not repeated,',
      { store: 'redis://:secret@localhost' },
      /^(?!.*secret).* is a string, not a lock store/,
    ],
    ['stores without a default', { stores: { reports: new MemoryLockStore() } }, /one of them named 'default'/],
    ['store and stores', { store: new MemoryLockStore(), stores: { default: new MemoryLockStore() } }, /either store, or stores/],
    ['a bad ttl', { store: new MemoryLockStore(), ttl: '1 parsec' }, /LockModule: ttl is '1 parsec'/],
    ['a bad wait', { store: new MemoryLockStore(), wait: -1 }, /LockModule: wait is -1/],
    [
      'a mistyped limit of maxWaiters',
      { store: new MemoryLockStore(), maxWaiters: { perkey: 5 } },
      /no option 'perkey'\. Did you mean 'perKey'/,
    ],
    ['a class as a ttl, whose source is not repeated,', { store: new MemoryLockStore(), ttl: class Ttl {} }, /ttl is the class Ttl, which/],
    [
      'a function as a wait',
      { store: new MemoryLockStore(), wait: () => 'secret' },
      /^(?!.*secret)LockModule: wait is the function wait, which/,
    ],
    ['a bigint as maxWaiters', { store: new MemoryLockStore(), maxWaiters: 5n }, /maxWaiters is 5\. Pass a whole number/],
    [
      'a function as a prefix',
      { store: new RedisLockStore('redis://127.0.0.1:1'), prefix: () => 'secret' },
      /^(?!.*secret).*prefix is the function prefix\. Use/,
    ],
    ['a bad maxWaiters', { store: new MemoryLockStore(), maxWaiters: 1.5 }, /maxWaiters is 1\.5\. Pass a whole number/],
  ])('%s is refused', async (_, options, message) => {
    const error = await rejectionOf(services(options as LockModuleOptions));
    expect((error as LockError).detail).toMatch(message);
    expect(error).toBeInstanceOf(LockConfigurationError);
  });

  test('LockModule itself is refused, with what to import instead', async () => {
    const error = await rejectionOf(Test.createTestingModule({ imports: [LockModule] }).compile());
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect(error.message).toMatch(/^LockModule has no options\. Import LockModule\.forRoot\(\{ store \}\) or LockModule\.forRootAsync/);
  });

  test('options that a factory left out are refused', async () => {
    const imports = [LockModule.forRootAsync({ useFactory: () => undefined as never })];
    const error = await rejectionOf(Test.createTestingModule({ imports }).compile());
    expect(error.message).toMatch(/LockModule has no options.* LockModule\.forRootAsync\(…\), whose factory returns \{ store \}\.$/);
  });

  test.each([
    ['the request', REQUEST, 'REQUEST'],
    ['what injects it', 'TENANT', 'TENANT'],
    ['a durable provider', 'REGION', 'REGION'],
  ])('forRootAsync that injects %s keeps the application from starting, and is told', async (_, token, name) => {
    const settings = {
      module: class {},
      providers: [
        { provide: 'TENANT', inject: [REQUEST], useFactory: (request: unknown) => request },
        { provide: 'REGION', scope: Scope.REQUEST, durable: true, useFactory: () => 'north' },
      ],
      exports: ['TENANT', 'REGION'],
    };
    const locks = LockModule.forRootAsync({ imports: [settings], inject: [token], useFactory: () => ({ store: new MemoryLockStore() }) });
    const module = await Test.createTestingModule({ imports: [locks] }).compile();
    const error = await rejectionOf(module.init());
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect((error as LockError).detail).toBe(
      `LockModule.forRootAsync injects ${name}, which is made anew for each request, so that each request would have locks and connections ` +
        'of its own. Inject what is made once, such as ConfigService.',
    );
  });

  test('a class that freezes its instances is named', async () => {
    @Injectable()
    class Frozen {
      constructor() {
        Object.freeze(this);
      }
      @DistributedLock('k')
      async run(): Promise<void> {}
    }
    const error = await rejectionOf(Test.createTestingModule({ imports: [LockModule.forTesting()], providers: [Frozen] }).compile());
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect(error.message).toMatch(/^Frozen has locked methods, and its constructor froze the instance.* Leave out Object\.freeze\(this\)/);
  });

  test('without LockModule, Nest names what to import', async () => {
    @Injectable()
    class Balance {
      @DistributedLock('k')
      async credit(): Promise<void> {}
    }
    const error = await rejectionOf(Test.createTestingModule({ providers: [Balance] }).compile());
    expect(error.message).toMatch(/dependencies of the Balance/);
    expect(error.message).toContain('LockModule.forRoot() or .forRootAsync(): import it in the root module, or LockModule.forTesting()');
  });

  test('an unknown store is refused, naming those that exist', async () => {
    @Injectable()
    class Balance {
      @DistributedLock({ key: 'k', store: 'report' })
      async credit(): Promise<void> {}
    }
    const stores = { default: new MemoryLockStore(), reports: new MemoryLockStore() };
    const error = await rejectionOf(
      Test.createTestingModule({ imports: [LockModule.forRoot({ stores })], providers: [Balance] }).compile(),
    );
    expect(error.message).toMatch(/^Balance\.credit: there is no store 'report'\. The stores are: default, reports\. Correct the name/);
  });
});

describe('when a method is called', () => {
  @Injectable()
  class Balance {
    @DistributedLock('balance:<customerId>')
    async credit(customerId: unknown): Promise<unknown> {
      return customerId;
    }
    @DistributedLock({ key: (customerId: unknown) => customerId as string })
    async byFunction(customerId: unknown): Promise<unknown> {
      return customerId;
    }
  }

  async function balance(): Promise<Balance> {
    const module = await Test.createTestingModule({ imports: [LockModule.forTesting()], providers: [Balance] }).compile();
    return module.get(Balance);
  }

  test.each([[undefined], [null], [Number.NaN], [{}], ['']])('%p in a key is refused: a key is never balance:undefined', async (value) => {
    const error = await rejectionOf((await balance()).credit(value));
    expect(error).toBeInstanceOf(LockKeyError);
    expect((error as LockError).detail).toMatch(/^Balance\.credit: the key 'balance:<customerId>': <customerId> is .*Make sure/);
  });

  test('a key over 1 KiB is refused', async () => {
    await expect((await balance()).credit('x'.repeat(1025))).rejects.toThrow(
      saying(/^Balance\.credit: .* bytes; at most 1024 are allowed\. Use an identifier/),
    );
  });

  test.each([
    [undefined, /the key is undefined\. Make sure that it is a string, or a list of at least one/],
    [null, /the key is null/],
    [7, /the key is 7/],
    [Promise.resolve('k'), /the key is a promise/],
    ['', /the key is empty/],
    [[], /the key is an empty list/],
    [['a', 7], /a key is 7, not a string/],
  ])('a key function that returns %p is refused', async (value, message) => {
    const error = await rejectionOf((await balance()).byFunction(value));
    expect(error).toBeInstanceOf(LockKeyError);
    expect((error as LockError).detail).toMatch(message);
    expect((error as LockError).detail).toMatch(/^Balance\.byFunction: /);
  });

  test('an instance that Nest did not make is refused, with both ways out', async () => {
    await expect(new Balance().credit('1')).rejects.toThrow(
      /^Balance\.credit is locked, but this instance was not made by Nest.*a provider.*attach\(instance\)/,
    );
    const { credit } = Balance.prototype;
    await expect(credit.call(undefined as never, '1')).rejects.toBeInstanceOf(LockConfigurationError);
  });

  test('a call in the constructor is refused, with when it may be made', async () => {
    @Injectable()
    class Hasty {
      readonly first = rejectionOf(this.credit());
      @DistributedLock('k')
      async credit(): Promise<void> {}
    }
    const module = await Test.createTestingModule({ imports: [LockModule.forTesting()], providers: [Hasty] }).compile();
    const { message } = await module.get(Hasty).first;
    expect(message).toMatch(/^Hasty\.credit is locked, but .*its constructor still runs.* onModuleInit\(\)/);
    await module.get(Hasty).credit();
  });

  test('options by hand are checked as those of the decorator are', async () => {
    const locks = await services({ store: new MemoryLockStore() });
    await expect(locks.withLock('k', { ttl: 0 }, () => 1)).rejects.toThrow(/^LockService\.withLock: ttl is 0/);
    await expect(locks.acquire('k', { wait: '5 parsecs' })).rejects.toThrow(/^LockService\.acquire: wait is '5 parsecs'/);
    await expect(locks.acquire('k', { signal: {} as never })).rejects.toThrow(/signal is not an AbortSignal\. Pass/);
    await expect(locks.withLock('k', { reentry: 'contxt' as never }, () => 1)).rejects.toThrow(
      /reentry is 'contxt'\. Use 'context' or 'never'/,
    );
    await expect(locks.withLock('k', null as never, () => 'ran')).resolves.toBe('ran');
    await expect(locks.withLock('', () => 1)).rejects.toThrow(saying(/the key is empty/));
    await expect(locks.withLock([], () => 1)).rejects.toThrow(saying(/the key is an empty list/));
    await expect(locks.withLock(7 as never, () => 1)).rejects.toThrow(saying(/the key is 7\. Make sure that it is a string/));
    await expect(locks.withLock('k', undefined as never)).rejects.toThrow(/no function to run inside the lock/);
    await expect(locks.operations.inspect('')).rejects.toThrow(saying(/the key is empty/));
    await expect(locks.withLock('k', { onBusy: 'ignore' as never }, () => 1)).rejects.toThrow(/onBusy is 'ignore'\. Use/);
    await expect(locks.operations.forceRelease('k', undefined as never)).rejects.toThrow(saying(/fence is undefined\. Pass the fence/));
    await expect(locks.operations.forceRelease('k', { fence: Number.NaN })).rejects.toThrow(
      saying(/fence is NaN\. Pass the fence that inspect/),
    );
    const secret = class Secret {} as never;
    await expect(locks.operations.forceRelease('k', { fence: secret })).rejects.toThrow(
      saying(/fence is the class Secret\. Pass the fence that inspect/),
    );
    await expect(locks.operations.forceRelease(secret, { fence: 7 })).rejects.toThrow(saying(/a key is a function, not a string/));
    await expect(locks.operations.forceRelease(secret, undefined as never)).rejects.toThrow(saying(/a key is a function, not a string/));
  });
});

test('a module that is not global is seen only where it is imported', async () => {
  @Injectable()
  class Balance {
    @DistributedLock('k')
    async credit(): Promise<void> {}
  }
  @Module({ providers: [Balance] })
  class Feature {}
  const local = LockModule.forRoot({ store: new MemoryLockStore(), isGlobal: false });
  await expect(Test.createTestingModule({ imports: [local, Feature] }).compile()).rejects.toThrow(/import it in the root module/);
});
