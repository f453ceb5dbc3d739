import 'reflect-metadata';
import { createMock } from '@golevelup/ts-jest';
import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { DistributedLock, InjectLocks, LockService } from 'nestjs-distributed-lock';

test('an auto-mock of the service cannot swallow the body', async () => {
  @Injectable()
  class Balance {
    @DistributedLock('k')
    async credit(): Promise<string> {
      return 'ran';
    }
  }
  const mocks = [{ withLock: () => undefined, sibling: () => undefined }, { withLock: async () => 'mocked' }];
  const empty = await Test.createTestingModule({ providers: [Balance] })
    .useMocker(() => ({}))
    .compile();
  await expect(empty.get(Balance).credit()).rejects.toThrow(/^Balance\.credit: .*has no withLock\(\)\. Replace it/);
  for (const mock of mocks) {
    const module = await Test.createTestingModule({ providers: [Balance] })
      .useMocker(() => mock)
      .compile();
    await expect(module.get(Balance).credit()).rejects.toThrow(
      /^Balance\.credit: .*did not run the method; it seems to be a mock\. Import LockModule\.forTesting/,
    );
  }
});

test('createMock() as the mocker of a testing module makes a mock of the service, which cannot swallow the body', async () => {
  @Injectable()
  class Balance {
    constructor(@InjectLocks('reports') readonly locks: LockService) {}
    @DistributedLock('k')
    async credit(): Promise<string> {
      return 'ran';
    }
  }
  const module = await Test.createTestingModule({ providers: [Balance] })
    .useMocker(createMock)
    .compile();
  await expect(module.get(Balance).credit()).rejects.toThrow(/^Balance\.credit: .*it seems to be a mock\. Import LockModule\.forTesting/);
});
