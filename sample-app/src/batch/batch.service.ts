import { Inject, Injectable } from '@nestjs/common';
import { DistributedLock } from 'nestjs-distributed-lock';
import type { Balance } from '../balance/balance.js';
import { BalanceService, type BalanceChange } from '../balance/balance.service.js';
import type { AccountDto } from './batch.dto.js';

@Injectable()
export class BatchService {
  constructor(@Inject(BalanceService) private readonly balances: BalanceService) {}

  /**
   * Batches of one account run one after the other. That lock does not protect the balance: another sub-account's batch
   * and a plain credit have other keys and change the same row. So `changeAll` takes the balance's own lock inside. The
   * order is always account, then balance; nobody takes them the other way round, so calls cannot wait for each other.
   */
  @DistributedLock({
    key: 'LOCK:CUSTOMER_BALANCE:<account.customerNumber>:<account.subAccountNumber>:<account.currencyCode>',
    ttl: '5s',
  })
  async post(account: AccountDto, changes: readonly BalanceChange[]): Promise<Balance> {
    return this.balances.changeAll(account.customerNumber, changes);
  }
}
