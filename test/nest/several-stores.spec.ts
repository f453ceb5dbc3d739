import 'reflect-metadata';
import { Injectable } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  DistributedLock,
  InjectLocks,
  LockModule,
  LockService,
  outsideLocks,
  RedisLockStore,
  type LockStore,
} from 'nestjs-distributed-lock';
import { PostgresLockStore } from 'nestjs-distributed-lock/postgres';
import { answered, patient } from '../support/patient';
import { PostgresServer } from '../support/postgres-server';
import { RedisServer } from '../support/redis-server';

@Injectable()
class Balances {
  constructor(@InjectLocks('reports') readonly reports: LockService) {}

  @DistributedLock({ key: 'k', wait: 0 })
  async credit<T>(body: () => T): Promise<Awaited<T>> {
    return await body();
  }

  @DistributedLock({ key: 'k', store: 'reports', wait: 0 })
  async report<T>(body: () => T): Promise<Awaited<T>> {
    return await body();
  }
}

describe('locks in Redis and locks in PostgreSQL, in one application', () => {
  let redis: RedisServer;
  let postgres: PostgresServer;
  const modules: TestingModule[] = [];

  const start = async (further: Record<string, LockStore>): Promise<TestingModule> => {
    const stores = { default: patient(new RedisLockStore(redis.url)), ...further };
    const module = await Test.createTestingModule({ imports: [LockModule.forRoot({ stores })], providers: [Balances] }).compile();
    modules.push(module);
    return module;
  };
  const withReports = async (): Promise<Record<string, LockStore>> => {
    const reports = new PostgresLockStore(postgres.pool());
    await reports.ensureSchema();
    return { reports: patient(reports) };
  };

  beforeAll(async () => {
    [redis, postgres] = await Promise.all([RedisServer.start(), PostgresServer.start()]);
  });
  afterAll(async () => {
    await Promise.all(modules.map((module) => module.close()));
    await Promise.all([redis.stop(), postgres.stop()]);
  });

  test('each method locks in the store that it names, and the same key of the other one is free', async () => {
    const [balances, others] = [(await start(await withReports())).get(Balances), (await start(await withReports())).get(Balances)];
    await balances.report(async () => {
      expect(await answered(() => balances.reports.operations.inspect('k'))).toMatchObject({
        by: expect.stringContaining('Balances.report') as unknown,
      });
      expect(await redis.client.keys('*lock:{k}')).toEqual([]);
      expect(await others.credit(() => 'ran')).toBe('ran');
      await expect(others.report(() => 'ran')).rejects.toMatchObject({ code: 'LOCK_NOT_ACQUIRED' });
    });
    await balances.credit(async () => {
      expect(await answered(() => balances.reports.operations.inspect('k'))).toBeNull();
      expect(await others.report(() => 'ran')).toBe('ran');
      await expect(others.credit(() => 'ran')).rejects.toMatchObject({ code: 'LOCK_NOT_ACQUIRED' });
    });
  });

  test('a lock of one store is none of the other one: a call for the same key inside it is no re-entry', async () => {
    const balances = (await start(await withReports())).get(Balances);
    await balances.report(() =>
      balances.credit(async () => {
        await expect(outsideLocks(() => balances.credit(() => 'ran'))).rejects.toMatchObject({ code: 'LOCK_NOT_ACQUIRED' });
        await expect(outsideLocks(() => balances.report(() => 'ran'))).rejects.toMatchObject({ code: 'LOCK_NOT_ACQUIRED' });
      }),
    );
  });

  // The last one: its server is gone then.
  test('a store that goes away takes only its own locks along', async () => {
    const balances = (await start(await withReports())).get(Balances);
    expect(await balances.report(() => 'ran')).toBe('ran');
    await postgres.kill();
    await expect(balances.report(() => 'ran')).rejects.toMatchObject({ code: 'LOCK_STORE' });
    expect(await balances.credit(() => 'ran')).toBe('ran');
  });
});
