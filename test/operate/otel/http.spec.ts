import 'reflect-metadata';
import { context, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { Controller, Get, Param, type INestApplication } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { DistributedLock, LockModule, LockService, RedisLockStore } from 'nestjs-distributed-lock';
import { otelTelemetry } from 'nestjs-distributed-lock/otel';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { healthWith } from '../../support/health-with';
import { prepareForMiddleware } from '../../support/nest-major';
import { RedisServer } from '../../support/redis-server';
import { idOf, parentOf, Spans } from '../../support/spans';
import { until } from '../../support/until';

const HOLD = 'lock balance:<customerId>';
const WAIT = 'wait_for lock balance:<customerId>';

let spans: Spans;
let redis: RedisServer;
let applications: INestApplication[];

@Controller()
class Balances {
  /** The work of a request inside the lock, by its caller. */
  readonly bodies = new Map<string, () => Promise<void>>();

  @Get('credit/:customerId/:caller')
  @DistributedLock({ key: 'balance:<customerId>', wait: '1m' })
  async credit(@Param('customerId') customerId: string, @Param('caller') caller: string): Promise<string> {
    await spans.inside(`query of ${caller}`, async () => this.bodies.get(caller)?.());
    return customerId;
  }
}

beforeAll(async () => {
  spans = new Spans();
  redis = await RedisServer.start();
});
afterAll(async () => {
  spans.end();
  await redis.stop();
});
beforeEach(async () => {
  applications = [];
  spans.clear();
  await redis.client.flushall();
});
afterEach(() => Promise.all(applications.map((application) => application.close())));

/** Makes a span for each request, as the instrumentation of HTTP does. */
function traceRequest({ url }: IncomingMessage, response: ServerResponse, next: () => void): void {
  const span = spans.provider.getTracer('http').startSpan(`request of ${url?.split('/').at(-1)}`, {}, ROOT_CONTEXT);
  response.once('close', () => span.end());
  context.with(trace.setSpan(ROOT_CONTEXT, span), next);
}

/**
 * The spans that have ended, without the waits of calls that had nobody before them: these calls asked again, since the
 * server stood still.
 */
function endedSpans(): readonly ReadableSpan[] {
  return spans.ended.filter(({ name, attributes }) => name !== WAIT || attributes['distributed_lock.blocked_by'] !== undefined);
}

/** The names of the spans right below the one of that name. */
function namesBelow(name: string): string[] {
  const parent = idOf(spans.one(name));
  return endedSpans()
    .filter((span) => parentOf(span) === parent)
    .map((span) => span.name);
}

/** The name of the span above the one above the one of that name. */
function grandparentOf(name: string): string | undefined {
  const parent = spans.ended.find((span) => idOf(span) === parentOf(spans.one(name)));
  return spans.ended.find((span) => parent && idOf(span) === parentOf(parent))?.name;
}

describe.each([
  ['Express', () => new ExpressAdapter()],
  ['Fastify', () => new FastifyAdapter()],
])('on %s', (_, makeAdapter) => {
  async function start(): Promise<INestApplication> {
    const telemetry = otelTelemetry({ tracerProvider: spans.provider });
    const module = await Test.createTestingModule({
      imports: [LockModule.forRoot({ store: new RedisLockStore(redis.url), telemetry })],
      controllers: [Balances],
    }).compile();
    const application = module.createNestApplication(makeAdapter(), { logger: false });
    applications.push(application);
    await prepareForMiddleware(application);
    application.use(traceRequest);
    await application.listen(0, '127.0.0.1');
    // A store that opened without an answer has no connection yet: the first call would wait for it.
    await healthWith(module.get(LockService));
    return application;
  }

  async function credit(application: INestApplication, caller: string): Promise<string> {
    return (await fetch(`${await application.getUrl()}/credit/7/${caller}`)).text();
  }

  test.each([
    ['one application', 1],
    ['two applications', 2],
  ])('requests that contend in %s have the spans of their locks below their own', async (__, count) => {
    const first = await start();
    const second = count === 1 ? first : await start();
    let answer: Promise<string> | undefined;
    first.get(Balances).bodies.set('first', async () => {
      answer = context.with(ROOT_CONTEXT, () => credit(second, 'second'));
      await until('the second request waits', async () => (await second.get(LockService).operations.health()).waitingHere === 1);
    });
    expect([await credit(first, 'first'), await answer]).toEqual(['7', '7']);
    await until('the ends of the requests', () => spans.ended.filter(({ name }) => name.startsWith('request')).length === 2);
    expect(namesBelow('request of first')).toEqual([HOLD]);
    expect(namesBelow('request of second')).toEqual([WAIT, HOLD]);
    expect(['first', 'second'].map((caller) => grandparentOf(`query of ${caller}`))).toEqual(['request of first', 'request of second']);
    expect(endedSpans()).toHaveLength(7);
  });
});
