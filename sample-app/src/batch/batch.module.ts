import { Module } from '@nestjs/common';
import { BalanceModule } from '../balance/balance.module.js';
import { BatchController } from './batch.controller.js';
import { BatchService } from './batch.service.js';

@Module({
  imports: [BalanceModule],
  controllers: [BatchController],
  providers: [BatchService],
})
export class BatchModule {}
