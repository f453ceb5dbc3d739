import 'reflect-metadata';
import { Controller, Get, Header, Inject, Param, type INestApplication } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { DistributedLock, LockModule, LockService, RedisLockStore } from 'nestjs-distributed-lock';
import { prometheusTelemetry } from 'nestjs-distributed-lock/prometheus';
import { readFileSync } from 'node:fs';
import { Registry } from 'prom-client';
import { COUNTERS, HISTOGRAMS, LEVELS, LIMITS, STATES, type Metric } from '../../../lib/operate/telemetry/metrics';
import { PrometheusServer } from '../../support/prometheus-server';
import { RedisServer } from '../../support/redis-server';
import { TcpProxy } from '../../support/tcp-proxy';
import { until } from '../../support/until';
import { LABELS, NAMES } from './prometheus-backend';

interface Dashboard {
  readonly panels: readonly { readonly title: string; readonly targets: readonly { readonly expr: string }[] }[];
}

/** Prometheus scrapes once a second, and goes on where a scrape has failed. */
const SCRAPED_MS = 30_000;
const TEST_MS = 120_000;
const KEY = 'balance:7';
/** Those that are no label of a metric. */
const ADDED_LABELS: ReadonlySet<string> = new Set(['instance', 'job', 'le']);

const { panels } = JSON.parse(readFileSync('docs/operations/grafana-dashboard.json', 'utf8')) as Dashboard;

@Controller()
class Balances {
  readonly #register: Registry;
  mayEnd = false;

  constructor(@Inject(Registry) register: Registry) {
    this.#register = register;
  }

  @Get('credit/:customerId')
  @DistributedLock({ key: 'balance:<customerId>', wait: '1m' })
  async credit(@Param('customerId') customerId: string): Promise<string> {
    await until('the end of the credit', () => this.mayEnd, TEST_MS);
    return customerId;
  }

  @Get('metrics')
  @Header('content-type', Registry.PROMETHEUS_CONTENT_TYPE)
  metrics(): Promise<string> {
    return this.#register.metrics();
  }
}

describe.each([
  ['Express', () => new ExpressAdapter()],
  ['Fastify', () => new FastifyAdapter()],
])('Prometheus, which scrapes an application on %s,', (_, makeAdapter) => {
  let redis: RedisServer;
  let proxy: TcpProxy;
  let application: INestApplication;
  let url: string;
  let prometheus: PrometheusServer;

  beforeAll(async () => {
    redis = await RedisServer.start();
  });
  afterAll(() => redis.stop());

  beforeEach(async () => {
    await redis.client.flushall();
    proxy = await TcpProxy.start(redis.port);
    const register = new Registry();
    const module = await Test.createTestingModule({
      imports: [LockModule.forRoot({ store: new RedisLockStore(proxy.url), telemetry: prometheusTelemetry({ register }) })],
      controllers: [Balances],
      providers: [{ provide: Registry, useValue: register }],
    }).compile();
    application = module.createNestApplication(makeAdapter(), { logger: false });
    await application.listen(0, '127.0.0.1');
    url = await application.getUrl();
    prometheus = await PrometheusServer.start(Number(new URL(url).port), 'docs/operations/alerts.yml');
  });
  afterEach(async () => {
    application.get(Balances).mayEnd = true;
    await prometheus.stop();
    await application.close();
    await proxy.stop();
  });

  /** Each selects one series, which comes to this value. */
  function expectValues(expected: Readonly<Record<string, number>>): Promise<void> {
    const read = async (selector: string) => [selector, (await prometheus.query(selector)).map(({ value }) => Number(value[1]))] as const;
    return expectSoon(
      async () => Object.fromEntries(await Promise.all(Object.keys(expected).map(read))),
      Object.fromEntries(Object.entries(expected).map(([selector, value]) => [selector, [value]])),
    );
  }

  test(
    'has the counts of three requests that contended, and the gauges while they did',
    async () => {
      const requests = [1, 2, 3].map(async () => (await fetch(`${url}/credit/7`)).text());
      const labels = 'distributed_lock_name="balance:<customerId>",distributed_lock_store="default"';
      await expectValues({
        [`distributed_lock_hold_active{${labels}}`]: 1,
        [`distributed_lock_waiter_active{${labels}}`]: 2,
        'distributed_lock_waiter_limit{distributed_lock_store="default"}': 50_000,
      });
      application.get(Balances).mayEnd = true;
      expect(await Promise.all(requests)).toEqual(['7', '7', '7']);
      await expectValues({
        [`distributed_lock_hold_active{${labels}}`]: 0,
        [`distributed_lock_waiter_active{${labels}}`]: 0,
        [`distributed_lock_acquire_duration_seconds_count{${labels},distributed_lock_contended="false"}`]: 1,
        [`distributed_lock_acquire_duration_seconds_count{${labels},distributed_lock_contended="true"}`]: 2,
        [`distributed_lock_acquire_duration_seconds_bucket{${labels},distributed_lock_contended="true",le="+Inf"}`]: 2,
        [`distributed_lock_hold_duration_seconds_count{${labels},error_type=""}`]: 3,
      });
    },
    TEST_MS,
  );

  test(
    'has every metric with its labels, evaluates the alert rules, and fills each panel of the dashboard',
    async () => {
      await countEverything();
      await expectSoon(labelsOfMetrics, listedLabels());
      await expectSoon(firingAlerts, ['LockLost', 'LockRefusedByStore', 'LockReleaseFailed', 'LockDeadlock']);
      const rules = await prometheus.alertRules();
      expect(rules.map(({ health, lastError }) => [health, lastError])).toEqual(rules.map(() => ['ok', undefined]));
      expect(rules).toHaveLength(11);
      await expectSoon(emptyPanels, ['Quorum: servers with a vote']);
    },
    TEST_MS,
  );

  /** Makes each metric count with each of its labels. */
  async function countEverything(): Promise<void> {
    const locks = application.get(LockService);
    // Samples from before the first scrape may be of any age, and fire nothing.
    await until('the first scrape', async () => (await prometheus.query('distributed_lock_waiter_limit')).length > 0, SCRAPED_MS);
    await Promise.allSettled([nested('a', 'b'), nested('b', 'a')]);
    const forced = await locks.acquire(KEY, { ttl: '9s' });
    const waiting = locks.acquire(KEY, { wait: '1m' });
    expect(await locks.tryAcquire(KEY)).toBeNull();
    const scraped =
      'distributed_lock_hold_active == 1 and on () distributed_lock_waiter_active == 1 and on () distributed_lock_lease_margin_count';
    await until('a renewal and the gauges', async () => (await prometheus.query(scraped)).length > 0, SCRAPED_MS);
    await locks.operations.forceRelease(KEY, { fence: forced.fence });
    const unanswered = await waiting;
    await locks.acquirePermit('erp', 2);
    proxy.mode = 'refuse';
    await unanswered.release();
    await expect(locks.acquire(KEY, { wait: 0 })).rejects.toMatchObject({ code: 'LOCK_STORE' });
    proxy.mode = 'pass';
  }

  /** Two of these, the other way round, wait for each other. */
  async function nested(outer: string, inner: string): Promise<void> {
    const locks = application.get(LockService);
    await locks.withLock(outer, async () => {
      await until('the other one', async () => (await locks.operations.inspect(inner)) !== null);
      await locks.withLock(inner, () => undefined);
    });
  }

  /** The labels that each metric is stored with, apart from those of the scrape and of buckets. */
  async function labelsOfMetrics(): Promise<Record<string, readonly string[]>> {
    const labels = new Map<string, Set<string>>();
    for (const { __name__: stored, ...others } of await prometheus.series('{__name__=~"distributed_lock_.+"}')) {
      const name = NAMES.get(stored.replace(/_(bucket|sum|count)$/, '')) ?? stored;
      const known = labels.get(name) ?? new Set();
      labels.set(name, known);
      const own = Object.keys(others).filter((label) => !ADDED_LABELS.has(label));
      own.forEach((label) => known.add(LABELS.get(label) ?? label));
    }
    return Object.fromEntries([...labels].map(([name, all]) => [name, [...all].toSorted()]));
  }

  async function firingAlerts(): Promise<readonly string[]> {
    return (await prometheus.alertRules()).filter(({ state }) => state === 'firing').map(({ name }) => name);
  }

  /** The titles of panels of which a query finds nothing. */
  async function emptyPanels(): Promise<readonly string[]> {
    const queries = panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, expr] as const));
    const results = await Promise.all(
      queries.map(([, expr]) => prometheus.query(expr.replaceAll(/\$__\w+/g, '5m').replaceAll(/\$\w+/g, '.*'))),
    );
    return queries.filter((__, at) => results[at]?.length === 0).map(([title]) => title);
  }
});

function listedLabels(): Record<string, readonly string[]> {
  // The application has no quorum.
  const { up, hearing } = STATES;
  const metrics = [HISTOGRAMS, COUNTERS, LEVELS, LIMITS, { up, hearing }].flatMap((list) => Object.values<Metric>(list));
  return Object.fromEntries(metrics.map(({ name, labels }) => [name, labels.toSorted()]));
}

/** Waits until the result of `read` equals `expected`. */
async function expectSoon<T>(read: () => Promise<T>, expected: T): Promise<void> {
  const check = async (): Promise<void> => expect(await read()).toEqual(expected);
  const isSo = (): Promise<boolean> =>
    check().then(
      () => true,
      () => false,
    );
  // The last check says what is missing.
  await until('what is expected', isSo, SCRAPED_MS).catch(check);
}
