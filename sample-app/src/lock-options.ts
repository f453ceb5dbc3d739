import type { LockModuleOptions } from 'nestjs-distributed-lock';
import { otelTelemetry } from 'nestjs-distributed-lock/otel';
import { prometheusTelemetry } from 'nestjs-distributed-lock/prometheus';
import type { Registry } from 'prom-client';
import type { Database } from './database/database.js';
import { makeLockStore } from './lock-store.js';
import type { Settings } from './settings.js';

export async function lockOptions({ locks, lockWait }: Settings, register: Registry, database: Database): Promise<LockModuleOptions> {
  return {
    store: await makeLockStore(locks),
    wait: lockWait,
    // A lock that is taken inside a transaction is held until the commit.
    transaction: database.transactionEnd,
    telemetry: [otelTelemetry({ metrics: false }), prometheusTelemetry({ register })],
  };
}
