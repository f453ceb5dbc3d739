import { metrics, type Meter, type MeterProvider } from '@opentelemetry/api';
import { Test, type TestingModule } from '@nestjs/testing';
import { LockModule, LockService, MemoryLockStore, type LockTelemetry } from 'nestjs-distributed-lock';
import { otelMetrics } from 'nestjs-distributed-lock/otel';
import { saying } from '../support/saying';
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
  const telemetry = otelMetrics();
  const backend = new OtelBackend();
  metrics.setGlobalMeterProvider(backend.provider);
  const locks = await start(telemetry);
  await locks.withLock('k', () => undefined);
  expect((await backend.read()).get('distributed_lock.hold.duration')).toHaveLength(1);
});

test('without an SDK, locks work and nothing is counted', async () => {
  const locks = await start(otelMetrics());
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
  const locks = await start(otelMetrics({ meterProvider: { getMeter: () => (BROKEN[what] as Meter | undefined) ?? fail() } }));
  const held = await locks.acquire('k');
  expect(await locks.tryAcquire('k')).toBeNull();
  await held.release();
  await expect(locks.withLock('k', () => Promise.reject(new Error('its own')))).rejects.toThrow('its own');
});

test.each([
  [{ meterProvider: 5 }, 'otelMetrics: meterProvider is 5. Pass a MeterProvider of OpenTelemetry, or leave it out.'],
  [{ meterProvider: {} }, /meterProvider is an object of class Object. Pass a MeterProvider/],
  [{ provider: {} }, "otelMetrics: there is no option 'provider'. The options are: meterProvider."],
  ['yes', "otelMetrics: its options are 'yes'. Pass an object with meterProvider, or nothing."],
])('the options %j are refused', (options, message) => {
  const make = (): unknown => otelMetrics(options as { meterProvider: MeterProvider });
  expect(make).toThrow(saying(message));
  expect(make).toThrow(expect.objectContaining({ code: 'LOCK_CONFIGURATION' }));
});
