import 'reflect-metadata';
import { HttpService } from '@nestjs/axios';
import { Test } from '@nestjs/testing';
import {
  assertLocked,
  currentLock,
  DistributedLock,
  isLockError,
  Leader,
  LockKey,
  lockKey,
  LockModule,
  LockService,
  MemoryLockStore,
  outsideLocks,
  RedisLockStore,
  TransactionScope,
} from 'nestjs-distributed-lock';
import { QuorumLockStore } from 'nestjs-distributed-lock/quorum';
import { MySqlLockStore } from 'nestjs-distributed-lock/mysql';
import { PostgresLockStore, schemaSql, withRowLock } from 'nestjs-distributed-lock/postgres';
import { LockTesting } from 'nestjs-distributed-lock/testing';
import { acceptTickets, enterTicketsOf, sendTickets, TICKETS_FIELD } from 'nestjs-distributed-lock/tickets';
import { transformSync as swc } from '@swc/core';
import { transformSync as esbuild } from 'esbuild';
import { createPool } from 'mysql2';
import { runInThisContext } from 'node:vm';
import { Pool } from 'pg';
import { ScriptTarget, transpile } from 'typescript';

/** The functions as JavaScript knows them: without types. */
type Loose = (...args: unknown[]) => unknown;
type LooseLocks = Readonly<Record<keyof LockService, Loose>>;

const loose = (call: unknown): Loose => call as Loose;
const make = (type: unknown, ...args: unknown[]): unknown => Reflect.construct(type as new () => unknown, args) as unknown;
const run = (): number => 1;

/** Decorates a method `reserve(id, qty)` as a class that is loaded would, without its types. */
function decorate(decorator: unknown, ...on: [target?: unknown, name?: unknown, descriptor?: unknown]): void {
  class Stock {
    async reserve(id: string, qty: number): Promise<unknown> {
      return [id, qty];
    }
  }
  const { prototype } = Stock;
  const args = on.length > 0 ? on : [prototype, 'reserve', Object.getOwnPropertyDescriptor(prototype, 'reserve')];
  (decorator as Loose)(...args);
}

const lock = (...args: unknown[]): void => decorate(loose(DistributedLock)(...args));
const leader = (...args: unknown[]): void => decorate(loose(Leader)(...args));
const root = (options: unknown): unknown => Test.createTestingModule({ imports: [LockModule.forRoot(options as never)] }).compile();

class Stock {
  static async all(): Promise<void> {}
}
const STORE_AS_OPTIONS =
  /^LockModule has a store in place of options\. Import LockModule\.forRoot\(\{ store \}\) or .*whose factory returns \{ store \}\.$/;

/** Puts decorators on one method, the lowest first. */
function beside(...decorators: readonly unknown[]): void {
  decorate((target: object, name: string, descriptor: PropertyDescriptor) => {
    for (const decorator of decorators) {
      (decorator as MethodDecorator)(target, name, descriptor);
    }
  });
}

/** A decorator of somebody else. */
const wrapped: MethodDecorator = (_target, _name, descriptor) => {
  const { value } = descriptor as { value?: Loose };
  Object.assign(descriptor, { value: (...args: unknown[]) => value?.(...args) });
};

const STATIC = Object.getOwnPropertyDescriptor(Stock, 'all');
const CONTEXT = { kind: 'method', name: 'reserve', static: false, private: false, addInitializer: () => undefined };

/** The wrong use, and the message of its error: the thing, the mistake in it, and the next step. */
const WRONG: Readonly<Record<string, (locks: LooseLocks) => [use: () => unknown, message: RegExp]>> = {
  // Options of calls
  'a mistyped option of withLock': (locks) => [
    () => locks.withLock('k', { ...{ tll: 5 } }, run),
    /^LockService\.withLock: there is no option 'tll'\. Did you mean 'ttl'\? The options are: ttl, wait, signal,/,
  ],
  'what other libraries call wait': (locks) => [
    () => locks.withLock('k', { timeout: 5_000 }, run),
    /there is no option 'timeout'\. Did you mean 'wait'\?/,
  ],
  'how often to try': (locks) => [() => locks.acquire('k', { retries: 3 }), /there is no option 'retries'\. Did you mean 'wait'\?/],
  'onBusy in acquire': (locks) => [
    () => locks.acquire('k', { onBusy: 'skip' }),
    /^LockService\.acquire: 'onBusy' is no option here, but one of @DistributedLock\(\) and of withLock\(\)\. The options are:/,
  ],
  'wait in tryAcquire': (locks) => [
    () => locks.tryAcquire('k', { wait: 5 }),
    /^LockService\.tryAcquire: 'wait' is no option here, but one of LockModule\.forRoot\(\), of @DistributedLock\(\) and of calls/,
  ],
  'store in withLock': (locks) => [
    () => locks.withLock('k', { store: 'reports' }, run),
    /'store' is no option here, but one of LockModule\.forRoot\(\), @DistributedLock\(\) and @Leader\(\); .*@InjectLocks\(name\)/,
  ],
  'minHold in forRoot': () => [
    () => root({ store: new MemoryLockStore(), minHold: '1s' }),
    /^LockModule: 'minHold' is no option here, but one of @DistributedLock\(\) and of calls such as withLock\(\)\. The options are: store,/,
  ],
  'a number in place of options': (locks) => [
    () => locks.withLock('k', 5_000, run),
    /^LockService\.withLock: the options are 5000\. Pass an object with ttl, wait,/,
  ],
  'a function in place of options': (locks) => [() => locks.acquire('k', run), /^LockService\.acquire: the options are the function run\./],
  'null in place of options': (locks) => [() => locks.tryAcquire('k', null), /^LockService\.tryAcquire: the options are null\./],
  'an option that was inherited': (locks) => [
    () => locks.withLock('k', Object.create({ timeOut: 5 }), run),
    /there is no option 'timeOut'/,
  ],
  'a minHold above maxHold': (locks) => [
    () => locks.withLock('k', { minHold: '2s', maxHold: '1s' }, run),
    /minHold is 2000 ms, and maxHold 1000 ms: .* Raise maxHold, or lower minHold/,
  ],
  'a minHold above maxHold in a decorator': () => [
    () => lock({ key: 'k', minHold: '2s', maxHold: '1s' }),
    /^Stock\.reserve: minHold is 2000 ms, and maxHold 1000 ms/,
  ],
  'a by that is no text': (locks) => [
    () => locks.withLock('k', { by: 5 }, run),
    /^LockService\.withLock: by is 5\. Pass a text such as 'Balances\.close'\.$/,
  ],
  'an empty by of acquire': (locks) => [() => locks.acquire('k', { by: '' }), /^LockService\.acquire: by is ''\. Pass a text/],
  'a by of lead that is no text': (locks) => [() => locks.lead('k', async () => 1, { by: 5 }), /^LockService\.lead: by is 5\. Pass a text/],
  'a promise in place of what the leader runs': (locks) => [
    () => locks.lead('k', Promise.resolve()),
    /^LockService\.lead: what was passed is a promise, not a function\. Pass the function that the leader runs after the key\.$/,
  ],
  // Keys of calls
  'a placeholder in withLock': (locks) => [
    () => locks.withLock('order:<id>', run),
    /^LockService\.withLock: the key "order:<id>" has <id>, which is a placeholder only in the template of @DistributedLock.* Write lockKey`order:\$\{id\}`/,
  ],
  'a placeholder with a path in a list of acquire': (locks) => [
    () => locks.acquire(['a', 'order:<dto.id>']),
    /^LockService\.acquire: the key "order:<dto\.id>" has <dto\.id>/,
  ],
  'a placeholder in lead': (locks) => [() => locks.lead('feed:<id>', async () => 1), /the key "feed:<id>" has <id>/],
  'a placeholder in withRowLock': () => [
    () => withRowLock({ query: async () => [] }, 'order:<0>', run),
    /^withRowLock: the key "order:<0>" has <0>/,
  ],
  'a placeholder in lockKey': () => [() => lockKey`order:<id>`, /^lockKey`order:<id>`: the key "order:<id>" has <id>/],
  'a key of white space': (locks) => [
    () => locks.withLock(' ', run),
    /^LockService\.withLock: the key is empty but for white space\. Name/,
  ],
  'lockKey as a function': () => [
    () => loose(lockKey)('order:1'),
    /^lockKey\(\) was called with a string\. Write it as a tag, without brackets, .*lockKey`order:\$\{id\}`/,
  ],
  'a number for currentLock': () => [
    () => loose(currentLock)(5),
    /^currentLock: a key is 5, not a string\. Make sure that the key is text/,
  ],
  'assertLocked without a key': () => [() => loose(assertLocked)(), /^assertLocked: a key is undefined, not a string/],
  // @DistributedLock
  'a mistyped option of @DistributedLock': () => [
    () => lock({ key: 'k', tll: 5 }),
    /^Stock\.reserve: @DistributedLock\(\): there is no option 'tll'\. Did you mean 'ttl'\?/,
  ],
  'a ticket for @DistributedLock': () => [() => lock({ key: 'k', ticket: 'x' }), /'ticket' is no option here, but one of calls/],
  'a second argument of @DistributedLock': () => [
    () => lock('stock:<id>', { ttl: '30s' }),
    /^@DistributedLock\(\) takes one argument, and got 2\. Put the key among the options: @DistributedLock\(\{ key:/,
  ],
  'a list of keys as such': () => [
    () => lock(['a', 'b']),
    /@DistributedLock\(\) has no key: what was passed is an array\. Pass a template .* or a function of the arguments, which returns a key or a list of keys/,
  ],
  'a class as a key': () => [() => lock(Stock), /@DistributedLock\(\) has no key: what was passed is the class Stock\./],
  '@DistributedLock without its brackets': () => [
    () => decorate(DistributedLock),
    /^@DistributedLock\(\) was written without its brackets\. Write it as @DistributedLock\(\{ key:/,
  ],
  '@DistributedLock without its brackets, as a standard decorator': () => [
    () => decorate(DistributedLock, Stock.all, CONTEXT),
    /^@DistributedLock\(\) was written without its brackets/,
  ],
  'a number as a key': () => [() => lock({ key: 7 }), /@DistributedLock\(\) has no key: the option key is 7\. Pass a template/],
  'a template of white space': () => [() => lock(' '), /^Stock\.reserve: the key template is empty/],
  'a placeholder in square brackets': () => [
    () => lock('order:[id]'),
    /^Stock\.reserve: the key template 'order:\[id\]' has \[id\], which is no placeholder: .*Write it as <name>/,
  ],
  'a placeholder with a dollar': () => [() => lock('order:$id'), /has :\$id, which is no placeholder/],
  'a placeholder with a dollar after a stroke': () => [() => lock('order/$id'), /has \$id, which is no placeholder/],
  'a placeholder with a hash': () => [() => lock('#id'), /has #id, which is no placeholder/],
  '@DistributedLock on a class': () => [
    () => decorate(loose(DistributedLock)('k'), Stock),
    /^Stock: @DistributedLock\(\) is on a class, and not on a method of it\. Make it an instance method of a provider or controller, or use/,
  ],
  '@DistributedLock on a parameter': () => [
    () => decorate(loose(DistributedLock)('k'), Stock.prototype, 'reserve', 1),
    /^Stock\.reserve: @DistributedLock\(\) is on parameter 2, which @LockKey\('name'\) gives a name for the key\./,
  ],
  '@DistributedLock on a parameter of a constructor': () => [
    () => decorate(loose(DistributedLock)('k'), Stock, undefined, 0),
    /^Stock: @DistributedLock\(\) is on a parameter of the constructor\./,
  ],
  '@DistributedLock on a property': () => [
    () => decorate(loose(DistributedLock)('k'), Stock.prototype, 'reserve', undefined),
    /^Stock\.reserve: @DistributedLock\(\) is on a property, which has no method yet/,
  ],
  '@DistributedLock on a getter': () => [
    () => decorate(loose(DistributedLock)('k'), Stock.prototype, 'total', { get: run }),
    /^Stock\.total: @DistributedLock\(\) does not work on what is no method\./,
  ],
  '@DistributedLock on a static method': () => [
    () => decorate(loose(DistributedLock)('k'), Stock, 'all', STATIC),
    /^Stock\.all: @DistributedLock\(\) does not work on static methods/,
  ],
  'a standard decorator': () => [
    () => decorate(loose(DistributedLock)('k'), Stock.all, CONTEXT),
    /^reserve: @DistributedLock\(\) was called as a standard decorator.* Set "experimentalDecorators": true and .* of tsconfig\.json/,
  ],
  'a standard decorator of a leader': () => [
    () => decorate(loose(Leader)('k'), Stock.all, CONTEXT),
    /^reserve: @Leader\(\) was called as a standard decorator/,
  ],
  '@Leader twice on one method': () => [
    () => beside(Leader('a'), Leader('b')),
    /^Stock\.reserve: @Leader\(\) cannot stand beside @Leader\(\)\. Leave one out: a leader has one lock, while it leads\.$/,
  ],
  '@Leader above @DistributedLock': () => [
    () => beside(DistributedLock('k'), Leader('a')),
    /^Stock\.reserve: @Leader\(\) cannot stand beside @DistributedLock\(\)\./,
  ],
  '@DistributedLock above @Leader, with a decorator between them that wraps the method': () => [
    () => beside(Leader('a'), wrapped, DistributedLock('k')),
    /^Stock\.reserve: @DistributedLock\(\) cannot stand beside @Leader\(\)\./,
  ],
  'a store without a name in @DistributedLock': () => [
    () => lock({ key: 'k', store: '' }),
    /^Stock\.reserve: store is ''\. Pass the name of a store\.$/,
  ],
  'a store in place of its name in @Leader': () => [
    () => leader({ key: 'k', store: new MemoryLockStore() }),
    /^Stock\.reserve: store is an object of class MemoryLockStore\. Pass the name of a store\.$/,
  ],
  '@LockKey on a parameter of a static method': () => [
    () => LockKey('id')(Stock, 'all', 0),
    /^@LockKey\("id"\): use it on a parameter of an instance method, with a name/,
  ],
  '@LockKey on a parameter of a method without a lock': (locks) => [
    () => {
      class Order {
        async ship(id: string): Promise<string> {
          return id;
        }
      }
      LockKey('orderId')(Order.prototype, 'ship', 0);
      return locks.attach(new Order());
    },
    /^Order\.ship: @LockKey\(\) needs @DistributedLock\(\) on the method of its parameter\. Add it, or leave @LockKey\(\) out\.$/,
  ],
  '@LockKey on a parameter of a method without a lock, in a provider': () => [
    () => {
      class Order {
        async pay(id: string): Promise<string> {
          return id;
        }
        async ship(id: string): Promise<string> {
          return id;
        }
      }
      LockKey('orderId')(Order.prototype, 'pay', 0);
      LockKey('orderId')(Order.prototype, 'ship', 0);
      const descriptor = Object.getOwnPropertyDescriptor(Order.prototype, 'pay') as TypedPropertyDescriptor<Order['pay']>;
      DistributedLock('order:<orderId>')(Order.prototype, 'pay', descriptor);
      return Test.createTestingModule({ imports: [LockModule.forTesting()], providers: [Order] }).compile();
    },
    /^Order\.ship: @LockKey\(\) needs @DistributedLock\(\) on the method/,
  ],
  '@LockKey with one name on two parameters': () => [
    () => {
      class Order {}
      LockKey('id')(Order.prototype, 'ship', 1);
      LockKey('id')(Order.prototype, 'ship', 0);
    },
    /^@LockKey\('id'\): Order\.ship has two parameters of this name\. Give each parameter one name of its own/,
  ],
  '@LockKey twice on one parameter': () => [
    () => {
      class Order {}
      LockKey('id')(Order.prototype, 'ship', 0);
      LockKey('no')(Order.prototype, 'ship', 0);
    },
    /^@LockKey\('no'\): Order\.ship has two names for one parameter/,
  ],
  // @Leader
  'a placeholder in @Leader': () => [
    () => leader('feed:<id>'),
    /^Stock\.reserve: the key "feed:<id>" has <id>, which is a placeholder only/,
  ],
  'an option of @Leader from elsewhere': () => [
    () => leader({ key: 'feed', wait: 5 }),
    /^Stock\.reserve: @Leader\(\): 'wait' is no option here, but one of/,
  ],
  'a second argument of @Leader': () => [() => leader('feed', { ttl: '5s' }), /^@Leader\(\) takes one argument, and got 2\./],
  '@Leader on a class': () => [() => decorate(loose(Leader)('k'), Stock), /^Stock: @Leader\(\) is on a class/],
  // Modules and stores
  'a store in place of the options of forRoot': () => [() => root(new MemoryLockStore()), STORE_AS_OPTIONS],
  'a store in place of the options of forRootAsync': () => [
    () => loose(LockModule.forRootAsync)(new RedisLockStore('redis://127.0.0.1:1')),
    STORE_AS_OPTIONS,
  ],
  'a store that the factory returns in place of options': () => [
    () => Test.createTestingModule({ imports: [LockModule.forRootAsync({ useFactory: () => new MemoryLockStore() as never })] }).compile(),
    STORE_AS_OPTIONS,
  ],
  'an empty store beside stores': () => [
    () => root({ stores: { default: new MemoryLockStore() }, store: '' }),
    /^LockModule: pass either store, or stores with one of them named 'default'\.$/,
  ],
  'a telemetry that follows nothing': () => [
    () => root({ store: new MemoryLockStore(), telemetry: {} }),
    /^LockModule: telemetry is an object of class Object\. Pass what otelTelemetry\(\) or prometheusTelemetry\(\) returns, or a list/,
  ],
  'a telemetry of a list that follows nothing': () => [
    () => root({ store: new MemoryLockStore(), telemetry: [{ event: run }, { evnt: run }] }),
    /^LockModule: telemetry is an object of class Object\./,
  ],
  'an isGlobal that is no boolean': () => [
    () => root({ store: new MemoryLockStore(), isGlobal: 'yes' }),
    /^LockModule: isGlobal is 'yes'\. Use true or false\.$/,
  ],
  'an isGlobal of forRootAsync that is no boolean': () => [
    () => LockModule.forRootAsync({ useFactory: () => ({ store: new MemoryLockStore() }), isGlobal: 1 as never }),
    /^LockModule: isGlobal is 1\. Use true or false\.$/,
  ],
  'a debug that is no boolean': () => [
    () => root({ store: new MemoryLockStore(), debug: 'true' }),
    /^LockModule: debug is 'true'\. Use true or false\.$/,
  ],
  'an option of forTesting from elsewhere': () => [
    () => loose(LockModule.forTesting)({ ttl: '1s' }),
    /^LockModule\.forTesting: 'ttl' is no option here, but one of LockModule\.forRoot\(\).* The options are: storeNames, controller/,
  ],
  'a text as storeNames of forTesting': () => [
    () => loose(LockModule.forTesting)({ storeNames: 'a' }),
    /storeNames is, or has, 'a'\. Pass a list of names, such as \['reports'\]/,
  ],
  'a text as storeNames of forRoot': () => [() => root({ store: new MemoryLockStore(), storeNames: 'a' }), /storeNames is, or has, 'a'/],
  'a number in storeNames': () => [() => root({ store: new MemoryLockStore(), storeNames: ['a', 7] }), /storeNames is, or has, 7/],
  'forRootAsync with nothing': () => [
    () => (LockModule.forRootAsync as Loose)(),
    /^LockModule\.forRootAsync: nothing makes the options\. Pass useFactory, useClass or useExisting/,
  ],
  'the options themselves for forRootAsync': () => [
    () => (LockModule.forRootAsync as Loose)({ ttl: '5s' }),
    /^LockModule\.forRootAsync: 'ttl' is no option here, but one of LockModule\.forRoot\(\)/,
  ],
  'a prefix in the memory store that Redis refuses': () => [
    () => root({ store: new MemoryLockStore(), prefix: '{app}' }),
    /^LockModule: prefix is '\{app\}'\. Use 1 to 200 characters without braces/,
  ],
  'a mistyped option of RedisLockStore': () => [
    () => make(RedisLockStore, 'redis://127.0.0.1:1', { minReplica: 1 }),
    /^RedisLockStore: there is no option 'minReplica'\. Did you mean 'minReplicas'\?/,
  ],
  'an option of RedisLockStore for a quorum': () => [
    () => make(QuorumLockStore, ['redis://a', 'redis://b', 'redis://c'], { minReplicas: 1 }),
    /^QuorumLockStore: 'minReplicas' is no option here, but one of RedisLockStore\. The options are: longestLease/,
  ],
  'an option of PostgresLockStore for the memory store': () => [
    () => make(MemoryLockStore, { schema: 'locks' }),
    /^MemoryLockStore: 'schema' is no option here, but one of PostgresLockStore .* The options are: expires/,
  ],
  'an address as the options of PostgresLockStore, whose password is not repeated': () => [
    () => make(PostgresLockStore, new Pool(), 'postgres://user:secret@host/db'),
    /^(?!.*secret)PostgresLockStore: the options are a string\. Pass an object with schema, listen, or nothing/,
  ],
  'a mistyped option of MySqlLockStore': () => [
    () => make(MySqlLockStore, createPool('mysql://user@127.0.0.1:1/db'), { polls: true }),
    /^MySqlLockStore: there is no option 'polls'\. Did you mean 'poll'\?/,
  ],
  'a mistyped option of schemaSql': () => [
    () => loose(schemaSql)({ shema: 'locks' }),
    /^schemaSql: there is no option 'shema'\. Did you mean/,
  ],
  'a mistyped option of withRowLock': () => [
    () => loose(withRowLock)({ query: async () => [] }, 'k', run, { timeout: 5 }),
    /^withRowLock: there is no option 'timeout'\. Did you mean 'wait'\?/,
  ],
  'a text as the options of LockTesting': () => [() => make(LockTesting, 'expires'), /^LockTesting: the options are a string\./],
  // Helpers
  'attach with nothing': (locks) => [() => locks.attach(), /^LockService\.attach: what was passed is undefined\. Pass the instance/],
  'attach with a class': (locks) => [() => locks.attach(Stock), /^LockService\.attach: what was passed is the class Stock\./],
  'a promise for outsideLocks': () => [
    () => loose(outsideLocks)(Promise.resolve()),
    /^outsideLocks: what was passed is a promise, not a function\. Pass a function that begins the work: outsideLocks\(\(\) =>/,
  ],
  'a promise for the run of a TransactionScope': () => [
    () => loose(new TransactionScope().run)(Promise.resolve()),
    /^TransactionScope\.run: what was passed is a promise, not a function\./,
  ],
  'an HttpService for sendTickets': () => [
    () => loose(sendTickets)(new HttpService(), 'http://stock:3000'),
    /^sendTickets: what was passed is an object of class HttpService\. Pass an instance of axios: httpService\.axiosRef/,
  ],
  'a job in place of its data for enterTicketsOf': () => [
    () => enterTicketsOf({ id: 7, data: { orderId: '1', [TICKETS_FIELD]: 'any' } }, run),
    /^enterTicketsOf was given an object whose data has the tickets, such as a job\. Pass that: enterTicketsOf\(job\.data, …\)\.$/,
  ],
  'acceptTickets as a middleware': () => [
    () => loose(acceptTickets)({ headers: {} }, {}, run),
    /^acceptTickets was called with a request\. Call it yourself: app\.use\(acceptTickets\(\)\)/,
  ],
};

describe('what is used wrongly is refused with what to do:', () => {
  let locks: LooseLocks;

  beforeAll(async () => {
    const module = await Test.createTestingModule({ imports: [LockModule.forTesting()] }).compile();
    const service = module.get(LockService);
    const methods = Object.getOwnPropertyNames(LockService.prototype) as (keyof LockService)[];
    locks = Object.fromEntries(methods.map((name) => [name, (...args) => loose(service[name]).apply(service, args)])) as LooseLocks;
  });

  test.each(Object.entries(WRONG))('%s', async (_, row) => {
    const [use, message] = row(locks);
    const error: unknown = await (async () => use())().then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(isLockError(error) ? error.detail : error).toMatch(message);
    expect((error as Error).name).toMatch(/^Lock(Configuration|Key)Error$/);
  });
});

const CLASS = "class Stock { @DistributedLock('stock:<id>') async reserve(id: string) { return id; } }";

test.each<[string, () => string]>([
  ['TypeScript', () => transpile(CLASS, { target: ScriptTarget.ES2022 })],
  ['esbuild', () => esbuild(CLASS, { loader: 'ts', target: 'es2022', tsconfigRaw: '{}' }).code],
  [
    'swc',
    () => swc(CLASS, { jsc: { parser: { syntax: 'typescript', decorators: true }, transform: { decoratorVersion: '2022-03' } } }).code,
  ],
])('what %s compiles without experimentalDecorators says how to turn them on', (_, build) => {
  const load = (): unknown => runInThisContext(`(DistributedLock) => {${build()}\n}`)(DistributedLock) as unknown;
  expect(load).toThrow(/^reserve: @DistributedLock\(\) was called as a standard decorator.*"experimentalDecorators": true/);
});

test('what only looks wrong works: a text with < from lockKey, a lone <, the run of a scope by itself, an Object.prototype of others', async () => {
  const module = await Test.createTestingModule({ imports: [LockModule.forTesting()] }).compile();
  const locks = module.get(LockService);
  for (const key of [lockKey`note:${'<id>'}`, lockKey`<${'id'}>`, 'a < b', '<a@b.c>', 'x->y', 'Map<>']) {
    await expect(locks.withLock(key, ({ keys }) => keys)).resolves.toEqual([key]);
  }
  expect(lockKey`note:${'<id>'}`).not.toBe(lockKey`note:${'%3Cid>'}`);
  Reflect.defineProperty(Object.prototype, 'ofOthers', { value: 1, enumerable: true, configurable: true });
  await expect(locks.withLock('k', { wait: 0 }, run).finally(() => Reflect.deleteProperty(Object.prototype, 'ofOthers'))).resolves.toBe(1);
  const { run: runIn } = new TransactionScope();
  await expect(runIn(() => 'ran')).resolves.toBe('ran');
  // The module's maxHold ends code, and a job of a moment may keep its lock for longer.
  const brief = await Test.createTestingModule({
    imports: [LockModule.forRoot({ store: new MemoryLockStore(), maxHold: '1s' })],
  }).compile();
  await expect(brief.get(LockService).withLock('k', { minHold: '2s' }, run)).resolves.toBe(1);
});

test('what only looks like a wrong decorator works: two locks on one method, a leader in a subclass, a job without tickets', async () => {
  const names = (): unknown => beside(DistributedLock('a'), DistributedLock('b'));
  expect(names).not.toThrow();
  class Feed {
    @Leader('feed')
    async read(): Promise<void> {}
  }
  class Other extends Feed {
    @Leader('other')
    override async read(): Promise<void> {}
  }
  expect(Other.name).toBe('Other');
  expect(enterTicketsOf({ data: { orderId: '1' } }, run)).toBe(1);
  const options = { store: new MemoryLockStore(), telemetry: [{ section: (_section: unknown, code: () => unknown) => code() }] };
  await expect(root(options)).resolves.toBeDefined();
});
