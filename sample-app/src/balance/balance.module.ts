import { Module } from '@nestjs/common';
import { DatabaseModule } from '../database/database.module.js';
import { BalanceController } from './balance.controller.js';
import { BalanceRepository } from './balance.repository.js';
import { BalanceService } from './balance.service.js';

@Module({
  imports: [DatabaseModule],
  controllers: [BalanceController],
  providers: [BalanceRepository, BalanceService],
  exports: [BalanceService],
})
export class BalanceModule {}
