import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { assertLocked, DistributedLock, LockExceptionFilter, lockKey, LockModule, RedisLockStore } from 'nestjs-distributed-lock';

@Injectable()
export class BalanceRepository {
  add(_customerId: string, _amount: bigint): Promise<void> {
    throw new Error('not run');
  }
}

@Injectable()
export class BalanceService {
  constructor(private readonly balances: BalanceRepository) {}

  @DistributedLock('balance:<customerId>')
  async credit(customerId: string, amount: bigint): Promise<void> {
    await this.balances.add(customerId, amount);
  }
}

@Module({
  imports: [LockModule.forRoot({ store: new RedisLockStore('redis://localhost:6379') })],
  providers: [BalanceService],
})
export class AppModule {}

export async function start(): Promise<void> {
  const app = await NestFactory.create(AppModule);
  app.useGlobalFilters(new LockExceptionFilter());
  app.enableShutdownHooks();
  await app.listen(3000);
}

export class Jobs {
  @DistributedLock({ key: 'job:report', onBusy: 'skip' })
  async report(): Promise<void> {
    await Promise.resolve();
  }
}

export function signalOf(customerId: string): AbortSignal {
  const { signal } = assertLocked(lockKey`balance:${customerId}`);
  return signal;
}
