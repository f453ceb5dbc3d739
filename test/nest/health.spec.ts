import 'reflect-metadata';
import { Controller, Get, Inject, Module, type INestApplication } from '@nestjs/common';
import { HealthCheck, HealthCheckService, HealthIndicatorService, TerminusModule, type HealthCheckResult } from '@nestjs/terminus';
import { Test } from '@nestjs/testing';
import {
  LockConfigurationError,
  LockModule,
  LockService,
  MemoryLockStore,
  type HealthSession,
  type StoreHealth,
} from 'nestjs-distributed-lock';
import request from 'supertest';
import { makeLocks } from '../support/make-locks';
import { NEST_MAJOR } from '../support/nest-major';
import { saying } from '../support/saying';

/** Says of itself what a test wants. */
class AskedStore extends MemoryLockStore {
  said: StoreHealth = {};

  async health(): Promise<StoreHealth> {
    return this.said;
  }
}

@Controller()
class ReadyController {
  constructor(
    @Inject(HealthCheckService) private readonly health: HealthCheckService,
    @Inject(HealthIndicatorService) private readonly indicators: HealthIndicatorService,
    @Inject(LockService) private readonly locks: LockService,
  ) {}

  @Get('ready')
  @HealthCheck()
  ready(): Promise<HealthCheckResult> {
    return this.health.check([() => this.locks.operations.indicate(this.indicators.check('locks'))]);
  }
}

const DEGRADED: StoreHealth = { latencyMs: 2, hearsTurns: false };
const DOWN: StoreHealth = { members: [{ reachable: true, voting: false }], majority: 1 };

describe('with Terminus', () => {
  const store = new AskedStore();
  let app: INestApplication;

  beforeAll(async () => {
    @Module({ imports: [TerminusModule.forRoot({ logger: false }), LockModule.forRoot({ store })], controllers: [ReadyController] })
    class AppModule {}
    const module = await Test.createTestingModule({ imports: [AppModule] }).compile();
    app = module.createNestApplication();
    await app.init();
  });
  afterAll(() => app.close());

  test.each<[string, number, string, StoreHealth, object]>([
    ['up', 200, 'ok', {}, { reasons: [], reachable: true, heldHere: 0, waitingHere: 0 }],
    ['degraded', 200, 'degraded', DEGRADED, { reasons: ['polls'], latencyMs: 2, hearsTurns: false }],
    ['down', 503, 'error', DOWN, { reasons: ['noMajority', 'membersAway'], majority: 1 }],
  ])('locks that are %s answer %i', async (status, code, overall, said, data) => {
    store.said = said;
    const response = await request(app.getHttpServer()).get('/ready').expect(code);
    const isKnown = status !== 'degraded' || NEST_MAJOR >= 12;
    // Terminus 11, which Nest 10 and 11 have, knows no `degraded`.
    const expected = isKnown
      ? { status: overall, details: { locks: { status, ...data } } }
      : { status: 'ok', details: { locks: { status: 'up', degraded: true, ...data } } };
    expect(response.body).toMatchObject(expected);
  });
});

/** A session as Terminus 11 has it: it knows no `degraded`. */
class OlderSession implements HealthSession {
  up<T extends Record<string, unknown>>(data?: T): Record<'locks', { status: 'up' } & T> {
    return { locks: { status: 'up', ...(data as T) } };
  }

  down<T extends Record<string, unknown>>(data?: T): Record<'locks', { status: 'down' } & T> {
    return { locks: { status: 'down', ...(data as T) } };
  }
}

test.each<[string, StoreHealth, object]>([
  ['up', {}, { status: 'up', reasons: [] }],
  ['degraded', DEGRADED, { status: 'up', degraded: true, reasons: ['polls'] }],
  ['down', DOWN, { status: 'down', reasons: ['noMajority', 'membersAway'] }],
])('a session without degraded is told that locks which are %s are up or down', async (_, said, data) => {
  const store = new AskedStore();
  store.said = said;
  const indication = await makeLocks(store).operations.indicate(new OlderSession());
  expect(indication).toMatchObject({ locks: data });
  const status: 'up' | 'down' | undefined = indication['locks']?.status;
  expect(status).toBeDefined();
});

test('a store is down after the time that is asked for', async () => {
  const store = new AskedStore();
  store.health = () => Promise.reject(new Error('away'));
  const locks = makeLocks(store);
  expect(await locks.operations.indicate(new OlderSession())).toMatchObject({ locks: { status: 'up', degraded: true, reachable: false } });
  expect(await locks.operations.indicate(new OlderSession(), { downAfter: 0 })).toMatchObject({
    locks: { status: 'down', reachable: false },
  });
});

test.each<[unknown, RegExp]>([
  [
    undefined,
    /^LockOperations\.indicate: the session is undefined\. Pass check\('locks'\) of a HealthIndicatorService of @nestjs\/terminus 11 or later\.$/,
  ],
  ['locks', /the session is 'locks'\./],
  [new HealthIndicatorService(), /the session is an object of class HealthIndicatorService\./],
])('anything but a session is refused: %p', async (session, message) => {
  const call = makeLocks(new AskedStore()).operations.indicate(session as HealthSession);
  await expect(call).rejects.toBeInstanceOf(LockConfigurationError);
  await expect(call).rejects.toThrow(saying(message));
});

test('options of indicate that are wrong are refused by its name', async () => {
  const call = makeLocks(new AskedStore()).operations.indicate(new OlderSession(), { downAfter: 'soon' });
  await expect(call).rejects.toThrow(saying(/^LockOperations\.indicate: downAfter is 'soon'/));
});

test('a store is asked for its health also where telemetry times its operations', async () => {
  const store = new AskedStore();
  store.said = DEGRADED;
  const module = await Test.createTestingModule({
    imports: [LockModule.forRoot({ store, telemetry: { operation: () => undefined } })],
  }).compile();
  expect(await module.get(LockService).operations.health()).toMatchObject({ status: 'degraded', hearsTurns: false });
  await module.close();
});
