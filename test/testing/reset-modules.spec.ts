import 'reflect-metadata';
import { expect, jest, test } from '@jest/globals';
import { readFileSync } from 'node:fs';

/** A class that injects the service, and what makes an application of it, as they are loaded now. */
async function load() {
  const { Inject } = await import('@nestjs/common');
  const { Test } = await import('@nestjs/testing');
  const { LockModule, LockService } = await import('nestjs-distributed-lock');
  class Balance {
    readonly locks: InstanceType<typeof LockService>;
    constructor(locks: InstanceType<typeof LockService>) {
      this.locks = locks;
    }
  }
  Inject(LockService)(Balance, undefined, 0);
  const start = (provider: new (locks: never) => { readonly locks: unknown }) =>
    Test.createTestingModule({ imports: [LockModule.forTesting()], providers: [provider] }).compile();
  return { Balance, LockService, start };
}

test('after jest.resetModules() a class that was imported before finds no service, and one that is imported anew does', async () => {
  const before = await load();
  jest.resetModules();
  const anew = await load();
  expect(anew.LockService).not.toBe(before.LockService);
  const error: unknown = await anew.start(before.Balance).catch((failure: unknown) => failure);
  expect((error as Error).message).toMatch(/can't resolve dependencies of the Balance \(\?\)[^]*LockService/);
  const module = await anew.start(anew.Balance);
  const { locks } = module.get(anew.Balance);
  expect(await locks.withLock('k', () => 'ran')).toBe('ran');
});

test('the page on tests names that error of Nest and its cure', () => {
  expect(readFileSync('docs/testing.md', 'utf8')).toMatch(
    /After `jest\.resetModules\(\)` there is a second `LockService`, and Nest "can't resolve dependencies"[^]*Import all of them anew/,
  );
});
