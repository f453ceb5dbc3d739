import { Controller, Get } from '@nestjs/common';
import { HealthCheck, HealthCheckService, HealthIndicatorService } from '@nestjs/terminus';
import { LockOperations } from 'nestjs-distributed-lock';

@Controller()
export class HealthController {
  constructor(
    private readonly health: HealthCheckService,
    private readonly indicators: HealthIndicatorService,
    private readonly locks: LockOperations,
  ) {}

  @Get('ready')
  @HealthCheck()
  ready() {
    return this.health.check([() => this.locks.indicate(this.indicators.check('locks'))]);
  }
}

export async function report(locks: LockOperations): Promise<object> {
  const { status, reasons, latencyMs } = await locks.health();
  return { status, reasons, latencyMs };
}
