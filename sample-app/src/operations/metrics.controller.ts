import { Controller, Get, Header, Inject } from '@nestjs/common';
import { Registry } from 'prom-client';

/** The metrics for Prometheus. */
@Controller('metrics')
export class MetricsController {
  constructor(@Inject(Registry) private readonly registry: Registry) {}

  @Get()
  @Header('content-type', Registry.PROMETHEUS_CONTENT_TYPE)
  metrics(): Promise<string> {
    return this.registry.metrics();
  }
}
