import { LockModule, RedisLockStore } from 'nestjs-distributed-lock';
import { otelTelemetry } from 'nestjs-distributed-lock/otel';

export function application(): void {
  LockModule.forRoot({ store: new RedisLockStore('redis://localhost:6379'), telemetry: otelTelemetry() });
}
