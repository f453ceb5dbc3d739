import { Module } from '@nestjs/common';
import { Registry } from 'prom-client';
import { MetricsController } from './metrics.controller.js';

/** A registry of the application's own: a test runs several applications in one process. */
@Module({
  controllers: [MetricsController],
  providers: [{ provide: Registry, useFactory: () => new Registry() }],
  exports: [Registry],
})
export class MetricsModule {}
