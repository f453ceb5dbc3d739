import { Body, Controller, Get, HttpCode, Inject, Param, Post } from '@nestjs/common';
import { CustomerParams } from '../balance/balance.dto.js';
import { RewardDto } from './points.dto.js';
import { PointsService } from './points.service.js';
import { RewardService } from './reward.service.js';

@Controller('customers/:customerId')
export class PointsController {
  constructor(
    @Inject(PointsService) private readonly points: PointsService,
    @Inject(RewardService) private readonly rewards: RewardService,
  ) {}

  @Get('points')
  async total(@Param() { customerId }: CustomerParams): Promise<{ points: number }> {
    return { points: await this.points.total(customerId) };
  }

  @Post('rewards')
  @HttpCode(200)
  async reward(@Param() { customerId }: CustomerParams, @Body() { points }: RewardDto): Promise<{ points: number }> {
    return { points: await this.rewards.reward(customerId, points) };
  }
}
