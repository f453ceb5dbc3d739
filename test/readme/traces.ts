import { LockModule, RedisLockStore, type TracedLock } from 'nestjs-distributed-lock';
import { otelTelemetry } from 'nestjs-distributed-lock/otel';
import { tracingChannel, type TracingChannelSubscribers } from 'node:diagnostics_channel';

declare const tracer: TracingChannelSubscribers<TracedLock>;

export function application(): void {
  LockModule.forRoot({ store: new RedisLockStore('redis://localhost:6379'), telemetry: otelTelemetry() });
  tracingChannel<unknown, TracedLock>('nestjs-distributed-lock:hold').subscribe(tracer);
}
