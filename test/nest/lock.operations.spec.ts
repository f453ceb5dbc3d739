import 'reflect-metadata';
import { setImmediate } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { LockConfigurationError, LockModule, LockOperations, LockService, MemoryLockStore } from 'nestjs-distributed-lock';

@Injectable()
class Operator {
  constructor(readonly operations: LockOperations) {}
}

const start = (stores: Record<string, MemoryLockStore>) =>
  Test.createTestingModule({ imports: [LockModule.forRoot({ stores })], providers: [Operator] });

describe('LockOperations', () => {
  test('is injected by its class, and sees what LockService locks', async () => {
    const module = await start({ default: new MemoryLockStore() }).compile();
    const { operations } = module.get(Operator);
    const lock = await module.get(LockService).acquire('balance:42');
    expect(await operations.inspect('balance:42')).toMatchObject({ fence: lock.fence });
    expect(await operations.forceRelease('balance:42', { fence: lock.fence })).toBe(true);
    expect(lock.isHeld()).toBe(false);
    expect(await operations.health()).toMatchObject({ status: 'up' });
    await module.close();
  });

  test('of() gives the operations of a named store', async () => {
    const module = await start({ default: new MemoryLockStore(), reports: new MemoryLockStore() }).compile();
    const { operations } = module.get(Operator);
    await module.get(LockService).withLock('k', async () => {
      expect(await operations.of('default').inspect('k')).not.toBeNull();
      expect(await operations.of('reports').inspect('k')).toBeNull();
    });
    expect(() => operations.of('archive')).toThrow(LockConfigurationError);
    expect(() => operations.of('archive')).toThrow(
      expect.objectContaining({
        detail: expect.stringMatching(/^LockOperations\.of: there is no store 'archive'\. The stores are: default, reports\./) as unknown,
      }),
    );
    await module.close();
  });

  test('is given to nobody before its store is open', async () => {
    let isOpen = false;
    const open = async () => {
      await setImmediate();
      isOpen = true;
    };
    const store = Object.assign(new MemoryLockStore(), { open });
    const asks = { provide: 'asks', inject: [LockOperations], useFactory: () => isOpen };
    const module = await Test.createTestingModule({ imports: [LockModule.forRoot({ store })], providers: [asks] }).compile();
    expect(module.get('asks')).toBe(true);
    await module.close();
  });

  test('is there where a test has replaced LockService', async () => {
    const replaced = start({ default: new MemoryLockStore() })
      .overrideProvider(LockService)
      .useValue({ withLock: () => undefined });
    const module = await replaced.compile();
    expect(await module.get(Operator).operations.inspect('k')).toBeNull();
    await module.close();
  });
});
