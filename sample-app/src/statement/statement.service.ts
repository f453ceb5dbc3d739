import { Inject, Injectable } from '@nestjs/common';
import { DistributedSemaphore } from 'nestjs-distributed-lock';
import { viewOf, type BalanceView } from '../balance/balance.js';
import { BalanceService } from '../balance/balance.service.js';
import { Erp } from './erp.js';

export interface Statement extends BalanceView {
  readonly statement: string;
}

@Injectable()
export class StatementService {
  constructor(
    @Inject(BalanceService) private readonly balances: BalanceService,
    @Inject(Erp) private readonly erp: Erp,
  ) {}

  /**
   * At most three at once for each customer, over all processes: nobody keeps the ERP from the others. It protects no
   * data, so it runs without a permit where the store of the locks does not answer.
   */
  @DistributedSemaphore({ key: 'statement:<customerId>', permits: 3, ttl: '5s', onUnavailable: 'run' })
  async print(customerId: string): Promise<Statement> {
    const balance = await this.balances.show(customerId);
    return { ...viewOf(balance), statement: await this.erp.print(customerId) };
  }
}
