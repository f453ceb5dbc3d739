import { Controller, Get } from '@nestjs/common';
import { HealthCheck, HealthCheckService, HealthIndicatorService } from '@nestjs/terminus';
import { LockService } from 'nestjs-distributed-lock';

@Controller()
export class HealthController {
  constructor(
    private readonly health: HealthCheckService,
    private readonly indicators: HealthIndicatorService,
    private readonly locks: LockService,
  ) {}

  @Get('ready')
  @HealthCheck()
  ready() {
    return this.health.check([() => this.locks.indicate(this.indicators.check('locks'))]);
  }
}

export async function report(locks: LockService): Promise<object> {
  const { status, reasons, latencyMs } = await locks.health();
  return { status, reasons, latencyMs };
}
