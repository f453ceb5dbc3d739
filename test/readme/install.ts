import { Module } from '@nestjs/common';
import { ConfigModule, ConfigService } from '@nestjs/config';
import { NestFactory } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import type { Redis } from 'ioredis';
import { LockExceptionFilter, LockModule, LockService, RedisLockStore } from 'nestjs-distributed-lock';
import { BalanceRepository, BalanceService } from './example';

declare const redis: Redis;
declare const reportsRedis: Redis;
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

export async function start(): Promise<void> {
  const app = await NestFactory.create(AppModule);
  app.useGlobalFilters(new LockExceptionFilter());
  app.enableShutdownHooks();
  await app.listen(3000);
}

const locks = LockModule.forRoot({
  stores: { default: new RedisLockStore(redis), reports: new RedisLockStore(reportsRedis) },
});

const replicated = new RedisLockStore(redis, { minReplicas: 1 });

export const several = [locks, replicated];

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
