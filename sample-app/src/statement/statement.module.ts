import { Module } from '@nestjs/common';
import { BalanceModule } from '../balance/balance.module.js';
import { Erp } from './erp.js';
import { StatementController } from './statement.controller.js';
import { StatementService } from './statement.service.js';

@Module({
  imports: [BalanceModule],
  controllers: [StatementController],
  providers: [Erp, StatementService],
})
export class StatementModule {}
