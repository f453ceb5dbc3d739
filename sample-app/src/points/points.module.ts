import { Module } from '@nestjs/common';
import { DatabaseModule } from '../database/database.module.js';
import { PointsController } from './points.controller.js';
import { PointsService } from './points.service.js';
import { RewardService } from './reward.service.js';

@Module({
  imports: [DatabaseModule],
  controllers: [PointsController],
  providers: [PointsService, RewardService],
})
export class PointsModule {}
