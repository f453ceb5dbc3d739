// What spans add to a locked call on a store in memory, in microseconds of CPU time: without a tracer, where spans are not sampled, and
// where they are.
// Run it after a build, with node bench/traces.mjs.
import { context } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { AlwaysOffSampler, BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import 'reflect-metadata';
import { LockModule, LockService, MemoryLockStore } from '../dist/esm/index.js';
import { otelTelemetry } from '../dist/esm/otel/index.js';
import { NestFactory } from '@nestjs/core';
import { alternate } from './alternate.mjs';
import { median } from './numbers.mjs';

const ROUNDS = 40;
const CALLS = 2_000;

const SUBJECTS = [
  { name: 'nothing' },
  { name: 'no spans', telemetry: otelTelemetry({ spans: false }) },
  { name: 'no tracer', telemetry: otelTelemetry() },
  { name: 'not sampled', telemetry: otelTelemetry({ tracerProvider: new BasicTracerProvider({ sampler: new AlwaysOffSampler() }) }) },
  { name: 'sampled', telemetry: otelTelemetry({ tracerProvider: new BasicTracerProvider() }) },
];

context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
for (const subject of SUBJECTS) {
  subject.application = await start(subject.telemetry);
  subject.locks = subject.application.get(LockService);
}

function start(telemetry) {
  return NestFactory.createApplicationContext(LockModule.forRoot({ store: new MemoryLockStore(), telemetry }), { logger: false });
}

async function body() {}

async function microseconds({ locks }) {
  const before = process.cpuUsage();
  for (let call = 0; call < CALLS; call++) {
    await locks.withLock('k', body);
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / CALLS;
}

const times = await alternate(SUBJECTS, ROUNDS, microseconds);
for (const subject of SUBJECTS) {
  console.log(`${subject.name.padEnd(12)} ${median(times.get(subject)).toFixed(1)} µs of CPU time a call`);
  await subject.application.close();
}
