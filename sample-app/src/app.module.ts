import { Module, ValidationPipe } from '@nestjs/common';
import { APP_FILTER, APP_INTERCEPTOR, APP_PIPE } from '@nestjs/core';
import { LockExceptionFilter, LockModule } from 'nestjs-distributed-lock';
import { LockPageModule } from 'nestjs-distributed-lock/page';
import { Registry } from 'prom-client';
import { BalanceModule } from './balance/balance.module.js';
import { BatchModule } from './batch/batch.module.js';
import { Database } from './database/database.js';
import { DatabaseModule } from './database/database.module.js';
import { lockOptions } from './lock-options.js';
import { HealthModule } from './operations/health.module.js';
import { MetricsModule } from './operations/metrics.module.js';
import { OPERATOR, OperatorGuard } from './operations/operator.guard.js';
import { RequestSpans } from './operations/request-spans.js';
import { PointsModule } from './points/points.module.js';
import { SettingsModule } from './settings.module.js';
import { Settings } from './settings.js';
import { StatementModule } from './statement/statement.module.js';

@Module({
  imports: [
    SettingsModule,
    LockModule.forRootAsync({ imports: [MetricsModule, DatabaseModule], inject: [Settings, Registry, Database], useFactory: lockOptions }),
    LockPageModule.forRoot({ guards: [OperatorGuard], imports: [SettingsModule], actions: () => OPERATOR }),
    DatabaseModule,
    BalanceModule,
    BatchModule,
    PointsModule,
    StatementModule,
    MetricsModule,
    HealthModule,
  ],
  providers: [
    // Answers 423 with Retry-After when a balance is busy, 429 for statements, and keeps the names of keys to itself.
    { provide: APP_FILTER, useClass: LockExceptionFilter },
    { provide: APP_INTERCEPTOR, useClass: RequestSpans },
    { provide: APP_PIPE, useFactory: () => new ValidationPipe({ transform: true, whitelist: true, forbidNonWhitelisted: true }) },
  ],
})
export class AppModule {}
