import { jest } from '@jest/globals';
import { metrics, type Meter } from '@opentelemetry/api';
import { Test, type TestingModule } from '@nestjs/testing';
import { LockModule, LockService, MemoryLockStore, type LockTelemetry } from 'nestjs-distributed-lock';
import { otelTelemetry } from 'nestjs-distributed-lock/otel';
import { metricsSuite } from './metrics-suite';
import { OtelBackend } from './otel-backend';

metricsSuite('OpenTelemetry', () => new OtelBackend());

let module: TestingModule | undefined;

async function start(telemetry: LockTelemetry): Promise<LockService> {
  module = await Test.createTestingModule({ imports: [LockModule.forRoot({ store: new MemoryLockStore(), telemetry })] }).compile();
  return module.get(LockService);
}

afterEach(async () => {
  await module?.close();
  module = undefined;
  metrics.disable();
});

test('the global meter provider is the one that is there when the application is made', async () => {
  const telemetry = otelTelemetry();
  const backend = new OtelBackend();
  metrics.setGlobalMeterProvider(backend.provider);
  const locks = await start(telemetry);
  await locks.withLock('k', () => undefined);
  expect((await backend.read()).get('distributed_lock.hold.duration')).toHaveLength(1);
});

test('without an SDK, locks work and nothing is counted', async () => {
  const locks = await start(otelTelemetry());
  expect(await locks.withLock('k', () => 'done')).toBe('done');
});

const fail = (): never => {
  throw new Error('a broken backend');
};
const broken = { record: fail, add: fail, addCallback: () => undefined };
const BROKEN: Readonly<Record<string, Partial<Meter> | undefined>> = {
  'has no meter': undefined,
  'makes no instruments': { createHistogram: fail },
  'takes no values': {
    createHistogram: () => broken as never,
    createCounter: () => broken as never,
    createObservableUpDownCounter: () => broken as never,
  },
};

test.each(Object.keys(BROKEN))('a meter provider that %s reaches no lock', async (what) => {
  const locks = await start(otelTelemetry({ meterProvider: { getMeter: () => (BROKEN[what] as Meter | undefined) ?? fail() } }));
  const held = await locks.acquire('k');
  expect(await locks.tryAcquire('k')).toBeNull();
  await held.release();
  await expect(locks.withLock('k', () => Promise.reject(new Error('its own')))).rejects.toThrow('its own');
});

test('without metrics, no meter is asked for', async () => {
  const meterProvider = { getMeter: jest.fn(fail) };
  const locks = await start(otelTelemetry({ metrics: false, meterProvider }));
  await locks.withLock('k', () => undefined);
  expect(meterProvider.getMeter).not.toHaveBeenCalled();
});
