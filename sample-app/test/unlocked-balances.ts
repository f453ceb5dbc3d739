import type { TestingModuleBuilder } from '@nestjs/testing';
import type { Balance } from '../src/balance/balance.js';
import { BalanceRepository } from '../src/balance/balance.repository.js';
import { BalanceService } from '../src/balance/balance.service.js';

/** The balance service with the decorator removed. */
class UnlockedBalanceService extends BalanceService {
  override async credit(customerId: string, amount: bigint): Promise<Balance> {
    return this.change(customerId, amount);
  }
}

/** Outside a lock there is no fence; all claim the same one. */
class UnguardedBalanceRepository extends BalanceRepository {
  protected override fenceOf(): number {
    return 0;
  }
}

/** The control: an application in which nothing is locked. */
export function withoutLock(builder: TestingModuleBuilder): TestingModuleBuilder {
  return builder
    .overrideProvider(BalanceService)
    .useClass(UnlockedBalanceService)
    .overrideProvider(BalanceRepository)
    .useClass(UnguardedBalanceRepository);
}
