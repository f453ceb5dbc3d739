import 'reflect-metadata';
import { Test } from '@nestjs/testing';
import { DistributedLock, isLockError, Leader, LockModule, LockService, MemoryLockStore, RedisLockStore } from 'nestjs-distributed-lock';
import { QuorumLockStore } from 'nestjs-distributed-lock/quorum';
import { MySqlLockStore } from 'nestjs-distributed-lock/mysql';
import { PostgresLockStore } from 'nestjs-distributed-lock/postgres';
import { LockTesting } from 'nestjs-distributed-lock/testing';
import { createPool } from 'mysql2';
import { Pool } from 'pg';
import { makeLocks } from '../support/make-locks';

type Options = Readonly<Record<string, unknown>>;

const locks = makeLocks(new MemoryLockStore()) as unknown as Readonly<Record<keyof LockService, (...args: unknown[]) => unknown>>;
const make = (type: unknown, ...args: unknown[]): unknown => Reflect.construct(type as new () => unknown, args) as unknown;
const decorate = (decorator: MethodDecorator): void => {
  class Stock {
    async count(): Promise<number> {
      return 1;
    }
  }
  decorator(Stock.prototype, 'count', Object.getOwnPropertyDescriptor(Stock.prototype, 'count') as PropertyDescriptor);
};

/** The places that take options, by the name that messages use. */
const PLACES: Readonly<Record<string, (options: Options) => unknown>> = {
  'LockModule.forRoot()': async (options) =>
    Test.createTestingModule({ imports: [LockModule.forRoot({ store: new MemoryLockStore(), ...options } as never)] }).compile(),
  'LockModule.forRootAsync()': (options) => LockModule.forRootAsync(options as never),
  'LockModule.forTesting()': (options) => LockModule.forTesting(options),
  '@DistributedLock()': (options) => decorate(DistributedLock({ key: 'k', ...options } as never) as unknown as MethodDecorator),
  '@Leader()': (options) => decorate(Leader({ key: 'k', ...options } as never) as unknown as MethodDecorator),
  'withLock()': (options) => locks.withLock('k', options, () => 1),
  'LockService.lead()': (options) => locks.lead('k', async () => 1, options),
  MemoryLockStore: (options) => make(MemoryLockStore, options),
  RedisLockStore: (options) => make(RedisLockStore, 'redis://127.0.0.1:1', options),
  QuorumLockStore: (options) => make(QuorumLockStore, ['redis://a', 'redis://b', 'redis://c'], options),
  MySqlLockStore: (options) => make(MySqlLockStore, createPool('mysql://user@127.0.0.1:1/db'), options),
  PostgresLockStore: (options) => make(PostgresLockStore, new Pool(), options),
  LockTesting: (options) => make(LockTesting, options),
};
/** Further options that Nest takes, and lists nowhere. */
const TAKEN: Readonly<Record<string, readonly string[]>> = { 'LockModule.forRoot()': ['storeNames', 'isGlobal'] };
/** An option of Nest alone. */
const OF_NEST = 'provideInjectionTokensFrom';

async function refusalBy(place: string, option: string): Promise<string> {
  const error: unknown = await (async () => PLACES[place]?.({ [option]: 1 }))().catch((thrown: unknown) => thrown);
  return isLockError(error) ? error.detail : '';
}

async function optionsOf(place: string): Promise<readonly string[]> {
  const [, list = ''] = /The options are: (.*)\.$/.exec(await refusalBy(place, 'zzzzzzzz')) ?? [];
  return [...list.split(', '), ...(TAKEN[place] ?? [])].filter((option) => option !== OF_NEST);
}

/** The options of each place. */
const all = new Map<string, readonly string[]>();

beforeAll(async () => {
  for (const place of Object.keys(PLACES)) {
    all.set(place, await optionsOf(place));
  }
});

test.each(Object.keys(PLACES))('an option of %s that is passed elsewhere is told where it belongs', async (place) => {
  const options = all.get(place) ?? [];
  expect(options).not.toContain('');
  for (const option of options) {
    for (const [elsewhere] of [...all].filter(([, others]) => !others.includes(option))) {
      const message = await refusalBy(elsewhere, option);
      const [, told] = new RegExp(`'${option}' is no option here, but one of (.*)\\. The options are: `).exec(message) ?? [];
      const named = Object.keys(PLACES).filter((each) => told?.includes(each));
      expect({ option, elsewhere, named: named.length > 0, wrong: named.filter((each) => !all.get(each)?.includes(option)) }).toEqual({
        option,
        elsewhere,
        named: true,
        wrong: [],
      });
    }
  }
});
