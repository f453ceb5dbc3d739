import 'reflect-metadata';
import { MetadataScanner } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { ModuleMocker } from 'jest-mock';
import { LockConfigurationError, LockModule, LockService, MemoryLockStore } from 'nestjs-distributed-lock';
import { inspect } from 'node:util';

type Loose = Readonly<Record<string, (...args: unknown[]) => unknown>>;

/** The methods that other libraries have, and what each is here. */
const OF_LOCK_SERVICE: Readonly<Record<string, RegExp>> = {
  using: /^LockService\.using\(\) does not exist\. Use withLock\(key, fn\)\.$/,
  lock: /^LockService\.lock\(\) does not exist\. Use acquire\(key\) or withLock\(key, fn\)\.$/,
  extend: /^LockService\.extend\(\) does not exist\. Use extend\(ttl\) of the lock itself\.$/,
  inspect: /^LockService\.inspect\(\) does not exist\. Use that of LockOperations\.$/,
  forceRelease: /^LockService\.forceRelease\(\) does not exist\. Use that of LockOperations/,
  list: /^LockService\.list\(\) does not exist\. Use that of LockOperations/,
  processes: /^LockService\.processes\(\) does not exist\. Use that of LockOperations/,
  incidents: /^LockService\.incidents\(\) does not exist\. Use that of LockOperations/,
  health: /^LockService\.health\(\) does not exist\. Use that of LockOperations/,
  indicate: /^LockService\.indicate\(\) does not exist\. Use that of LockOperations/,
  register: /^LockService\.register\(\) does not exist\. Use LockModule\.forRoot\(\{ store \}\)\.$/,
};
const OF_LOCK_MODULE: Readonly<Record<string, RegExp>> = {
  register: /^LockModule\.register\(\) does not exist\. Use forRoot\(\{ store \}\)\.$/,
  registerAsync: /^LockModule\.registerAsync\(\) does not exist\. Use forRootAsync\(\{ useFactory \}\)\.$/,
  forFeature: /^LockModule\.forFeature\(\) does not exist\. Use forRoot\(\) once, in the root module: it is global\.$/,
};

let locks: LockService;

beforeAll(async () => {
  locks = (await Test.createTestingModule({ imports: [LockModule.forTesting()] }).compile()).get(LockService);
});

test.each(Object.entries(OF_LOCK_SERVICE))('LockService.%s() names its counterpart', (name, message) => {
  const call = (): unknown => (locks as unknown as Loose)[name]?.('k', () => 1);
  expect(call).toThrow(LockConfigurationError);
  expect(call).toThrow(message);
});

test.each(Object.entries(OF_LOCK_MODULE))('LockModule.%s() names its counterpart', (name, message) => {
  const call = (): unknown => (LockModule as unknown as Loose)[name]?.({ store: new MemoryLockStore() });
  expect(call).toThrow(LockConfigurationError);
  expect(call).toThrow(message);
});

test('nothing that looks for members finds these: in, listings, scanners, mocks, and the printed service', () => {
  for (const [owner, names] of [
    [locks, OF_LOCK_SERVICE],
    [LockModule, OF_LOCK_MODULE],
  ] as const) {
    const found: string[] = [];
    for (let at: unknown = owner; at !== null; at = Object.getPrototypeOf(at)) {
      found.push(...Object.getOwnPropertyNames(at));
    }
    for (const name of Object.keys(names)) {
      expect([name, name in owner, found.includes(name)]).toEqual([name, false, false]);
    }
  }
  const scanned = new MetadataScanner().getAllMethodNames(LockService.prototype);
  expect(scanned).toContain('withLock');
  const mocker = new ModuleMocker(globalThis);
  const mock = mocker.generateFromMetadata(mocker.getMetadata(LockService) as never) as unknown as { prototype: object };
  expect('withLock' in mock.prototype).toBe(true);
  for (const name of [...Object.keys(OF_LOCK_SERVICE), 'hasOwnProperty']) {
    expect([name, scanned.includes(name), Object.hasOwn(mock.prototype, name)]).toEqual([name, false, false]);
  }
  expect(inspect(locks)).toMatch(/^(<ref \*1> )?LockService \{/);
});

test('other members that are not there are undefined, as of any object', async () => {
  const loose = locks as unknown as Loose;
  expect([loose['then'], loose['toJSON'], loose['withLocks'], (LockModule as unknown as Loose)['forRoots']]).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
  await expect(Promise.resolve(locks)).resolves.toBe(locks);
  expect(Object.prototype.toString.call(locks)).toBe('[object Object]');
  expect(locks).toBeInstanceOf(LockService);
  expect(Object.keys(locks)).toEqual(['siblings', 'operations']);
});

test('a subclass of the service may have a method of such a name', () => {
  class Own extends LockService {
    using(): string {
      return 'own';
    }
  }
  expect(Own.prototype.using()).toBe('own');
});

test('these names are errors of the compiler', () => {
  // @ts-expect-error -- it does not exist
  expect(() => locks.using('k', () => 1)).toThrow(LockConfigurationError);
  // @ts-expect-error -- it does not exist
  expect(() => LockModule.register({})).toThrow(LockConfigurationError);
});
