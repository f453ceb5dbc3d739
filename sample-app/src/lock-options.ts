import type { LockModuleOptions } from 'nestjs-distributed-lock';
import { otelTelemetry } from 'nestjs-distributed-lock/otel';
import { prometheusTelemetry } from 'nestjs-distributed-lock/prometheus';
import type { Registry } from 'prom-client';
import { makeLockStore } from './lock-store.js';
import type { Settings } from './settings.js';

export async function lockOptions({ locks, lockWait }: Settings, register: Registry): Promise<LockModuleOptions> {
  return {
    store: await makeLockStore(locks),
    wait: lockWait,
    telemetry: [otelTelemetry({ metrics: false }), prometheusTelemetry({ register })],
  };
}
