import { Body, Controller, HttpCode, Inject, Post } from '@nestjs/common';
import { viewOf, type BalanceView } from '../balance/balance.js';
import { parseAmount } from '../money/amount.js';
import { BatchDto } from './batch.dto.js';
import { BatchService } from './batch.service.js';

@Controller('batches')
export class BatchController {
  constructor(@Inject(BatchService) private readonly batches: BatchService) {}

  @Post()
  @HttpCode(200)
  async post(@Body() { account, entries }: BatchDto): Promise<BalanceView> {
    const changes = entries.map(({ type, amount }) => ({ type, amount: parseAmount(amount) }));
    return viewOf(await this.batches.post(account, changes));
  }
}
