import type { Redis } from 'ioredis';
import { LockModule, RedisLockStore } from 'nestjs-distributed-lock';
import { otelTelemetry } from 'nestjs-distributed-lock/otel';
import { prometheusTelemetry } from 'nestjs-distributed-lock/prometheus';

declare const redis: Redis;

// From 'nestjs-distributed-lock/otel'.
const withOtel = LockModule.forRoot({ store: new RedisLockStore(redis), telemetry: otelTelemetry() });

// From 'nestjs-distributed-lock/prometheus'.
const withPrometheus = LockModule.forRoot({ store: new RedisLockStore(redis), telemetry: prometheusTelemetry() });

export const modules = [withOtel, withPrometheus];
