import { Injectable } from '@nestjs/common';
import { assertLocked, DistributedLock, lockKey } from 'nestjs-distributed-lock';

@Injectable()
export class BalanceRepository {
  read(_customerId: string, _fence: number): Promise<bigint> {
    throw new Error('not run');
  }
  write(_customerId: string, _balance: bigint, _fence: number): Promise<bigint> {
    throw new Error('not run');
  }
}

// prettier-ignore
@Injectable()
export class BalanceService {
  constructor(private readonly balances: BalanceRepository) {}

  @DistributedLock({ key: 'balance:<customerId>', ttl: '10s' })
  async credit(customerId: string, amount: bigint): Promise<bigint> {
    const { fence } = assertLocked(lockKey`balance:${customerId}`);
    const balance = await this.balances.read(customerId, fence);
    return this.balances.write(customerId, balance + amount, fence);
  }
}
