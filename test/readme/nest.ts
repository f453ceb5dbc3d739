import { Module, type ExceptionFilter, type INestApplication } from '@nestjs/common';
import { ConfigModule, ConfigService } from '@nestjs/config';
import { Test } from '@nestjs/testing';
import type { Redis } from 'ioredis';
import { LockExceptionFilter, lockKey, LockModule, LockService, RedisLockStore, type LockStore } from 'nestjs-distributed-lock';
import { QuorumLockStore } from 'nestjs-distributed-lock/quorum';
import { PostgresLockStore, withRowLock } from 'nestjs-distributed-lock/postgres';
import type { Pool, PoolClient } from 'pg';

class BalanceRepository {}

class BalanceService {
  constructor(readonly balances: BalanceRepository) {}
}

declare const shared: LockStore;
declare const cls: { getId(): string; get(name: string): string };
declare const redis: Redis;
declare const redisA: Redis;
declare const redisB: Redis;
declare const redisC: Redis;
declare const redisD: Redis;
declare const redisE: Redis;
declare const pool: Pool;
declare const client: PoolClient;
declare const repository: BalanceRepository;

@Module({
  imports: [
    ConfigModule.forRoot(),
    LockModule.forRootAsync({
      imports: [ConfigModule],
      inject: [ConfigService],
      useFactory: (config: ConfigService) => ({
        store: new RedisLockStore(config.getOrThrow<string>('REDIS_URL')),
        ttl: '10s',
        wait: '5s',
      }),
    }),
  ],
  providers: [BalanceService],
})
export class AppModule {}

declare const CatchEverythingFilter: new () => ExceptionFilter;

export function filter(app: INestApplication): void {
  app.useGlobalFilters(new CatchEverythingFilter(), new LockExceptionFilter());
}

const locks = LockModule.forRoot({
  stores: { default: new RedisLockStore(redis), reports: new PostgresLockStore(pool) },
});

const described = LockModule.forRoot({ store: shared, describe: () => ({ request: cls.getId(), tenant: cls.get('tenant') }) });

export async function rotated(url: string, nextToken: () => Promise<string>): Promise<void> {
  const store = new RedisLockStore(url, {
    credentials: async () => ({ username: 'locker', password: await nextToken() }),
  });
  await store.close();
}

const replicated = new RedisLockStore(redis, { minReplicas: 1 });

const quorum = new QuorumLockStore([redisA, redisB, redisC, redisD, redisE], { longestLease: '1m' });

export const several = [locks, described, replicated, quorum];

export async function openPostgres(): Promise<PostgresLockStore> {
  const store = new PostgresLockStore(pool);
  await store.ensureSchema();
  return store;
}

export async function credit(customerId: string, amount: number): Promise<void> {
  await client.query('BEGIN');
  await withRowLock(client, lockKey`balance:${customerId}`, async () => {
    await client.query('UPDATE balances SET amount = amount + $2 WHERE customer_id = $1', [customerId, amount]);
  });
  await client.query('COMMIT');
}

export async function test(): Promise<unknown> {
  const module = await Test.createTestingModule({
    imports: [LockModule.forTesting()],
    providers: [BalanceService, BalanceRepository],
  }).compile();
  const service = module.get(LockService).attach(new BalanceService(repository));
  return service;
}

// prettier-ignore
export async function testApp(): Promise<unknown> {
  const testing = await Test.createTestingModule({ imports: [LockModule.forTesting()] }).compile();
  const app = await Test.createTestingModule({ imports: [AppModule] })
    .overrideProvider(LockService)
    .useValue(testing.get(LockService))
    .compile();
  return app;
}
