import { Test, type TestingModule } from '@nestjs/testing';
import { LockModule, LockService, MemoryLockStore, type Describe } from 'nestjs-distributed-lock';
import { prometheusTelemetry, type PrometheusOptions } from 'nestjs-distributed-lock/prometheus';
import { AggregatorRegistry, Counter, register as globalRegister, Registry, type OpenMetricsContentType } from 'prom-client';
import { saying } from '../../support/saying';
import { until } from '../../support/until';
import { metricsSuite } from './metrics-suite';
import { LABELS, NAMES, PrometheusBackend } from './prometheus-backend';

metricsSuite('prom-client', () => new PrometheusBackend());

let modules: TestingModule[];
let register: Registry;

beforeEach(() => {
  modules = [];
  register = new Registry();
});
afterEach(async () => {
  await Promise.all(modules.map((module) => module.close()));
  globalRegister.clear();
});

async function start(options: PrometheusOptions = { register }, describe?: Describe): Promise<LockService> {
  const module = await Test.createTestingModule({
    imports: [LockModule.forRoot({ store: new MemoryLockStore(), telemetry: prometheusTelemetry(options), describe })],
  }).compile();
  modules.push(module);
  return module.get(LockService);
}

async function holdsIn(registry: Registry | Registry<OpenMetricsContentType>): Promise<string | undefined> {
  return /^distributed_lock_hold_duration_seconds_count\{.*\} (\d+)$/m.exec(await registry.metrics())?.[1];
}

test('the metrics and labels are named as those of OpenTelemetry are in Prometheus', async () => {
  const locks = await start();
  const held = await locks.acquire('k');
  await locks.tryAcquire('k', { name: 'skips' });
  await held.release();
  const text = await register.metrics();
  expect([...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name).toSorted()).toEqual([...NAMES.keys()].toSorted());
  const labels = new Set([...text.matchAll(/(\w+)="/g)].map(([, label]) => label));
  expect([...LABELS.keys(), 'le']).toEqual(expect.arrayContaining([...labels]));
  expect(text).toContain(
    'distributed_lock_acquire_duration_seconds_count{distributed_lock_name="skips",distributed_lock_store="default",distributed_lock_mode="write",distributed_lock_outcome="skipped"} 1',
  );
});

test('without options the metrics are in the global registry', async () => {
  const locks = await start({});
  await locks.withLock('k', () => undefined);
  expect(await holdsIn(globalRegister)).toBe('1');
});

test('a module that is made again on the same registry goes on counting', async () => {
  await (await start()).withLock('k', () => undefined);
  await modules[0]?.close();
  await (await start()).withLock('k', () => undefined);
  expect(await holdsIn(register)).toBe('2');
});

test('a store that is closed has no state any more', async () => {
  await start();
  expect(await register.metrics()).toContain('distributed_lock_store_up{distributed_lock_store="default"} 1');
  await modules[0]?.close();
  expect(await register.metrics()).not.toContain('distributed_lock_store_up{');
});

test('a registry that was cleared gets its metrics anew', async () => {
  await (await start()).withLock('k', () => undefined);
  register.clear();
  await (await start()).withLock('k', () => undefined);
  expect(await holdsIn(register)).toBe('1');
});

test('a registry of OpenMetrics works too', async () => {
  const open = new Registry<OpenMetricsContentType>();
  open.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  await (await start({ register: open })).withLock('k', () => undefined);
  expect(await holdsIn(open)).toBe('1');
});

test('in OpenMetrics, the trace of a call is the exemplar of how long it waited and held', async () => {
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
  const open = new Registry<OpenMetricsContentType>();
  open.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  const locks = await start({ register: open }, () => ({ trace: traceId }));
  await locks.withLock('k', () => undefined);
  const text = await open.metrics();
  for (const name of ['acquire', 'hold']) {
    expect(text).toMatch(new RegExp(`^distributed_lock_${name}_duration_seconds_bucket\\{.*\\} 1 # \\{trace_id="${traceId}"\\}`, 'm'));
  }
  const held = await locks.acquire('k', { ttl: 100, renew: false });
  await locks.tryAcquire('k', { name: 'refused' });
  await until('the loss', () => !held.isHeld());
  await held.release().catch(() => undefined);
  const later = await open.metrics();
  for (const labels of ['distributed_lock_name="refused"', 'error_type="expired"']) {
    expect(later).toMatch(new RegExp(`^distributed_lock_(acquire|hold)_duration_seconds_bucket\\{.*${labels}.*\\} 1 # \\{trace_id=`, 'm'));
  }
  await (await start({ register }, () => ({ trace: traceId }))).withLock('k', () => undefined);
  expect(await register.metrics()).not.toContain('trace_id');
});

test('metrics that throw reach no lock', async () => {
  const locks = await start();
  for (const name of NAMES.keys()) {
    Object.assign(register.getSingleMetric(name) as object, { observe: fail, inc: fail });
  }
  const held = await locks.acquire('k');
  expect(await locks.tryAcquire('k')).toBeNull();
  await held.release();
  await expect(locks.withLock('k', () => Promise.reject(new Error('its own')))).rejects.toThrow('its own');
});

test('a metric of other code with the same name is refused by its name', () => {
  const counter = new Counter({ name: 'distributed_lock_losses_total', help: 'of other code', registers: [register] });
  counter.inc();
  expect(() => prometheusTelemetry({ register })).toThrow(
    saying(/the registry has a metric distributed_lock_losses_total of other code\. Give that one another name, or pass another register/),
  );
});

test.each([
  [{ register: 5 }, 'prometheusTelemetry: register is 5. Pass a Registry of prom-client, or leave it out.'],
  [{ registry: {} }, "prometheusTelemetry: there is no option 'registry'. Did you mean 'register'? The options are: register."],
])('the options %j are refused', (options, message) => {
  expect(() => prometheusTelemetry(options as PrometheusOptions)).toThrow(saying(message));
});

function fail(): never {
  throw new Error('a broken backend');
}

test('of the workers of a cluster, a store that one cannot reach is away', async () => {
  await start();
  const up = await register.getMetricsAsJSON();
  const away = up.map((metric) =>
    metric.name === 'distributed_lock_store_up' ? { ...metric, values: metric.values.map((one) => ({ ...one, value: 0 })) } : metric,
  );
  const all = await AggregatorRegistry.aggregate([up, away, up]).metrics();
  expect(all).toMatch(/^distributed_lock_store_up\{.*\} 0$/m);
  expect(all).not.toMatch(/^distributed_lock_store_up\{.*\} [1-9]/m);
});
