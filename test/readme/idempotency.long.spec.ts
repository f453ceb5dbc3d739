import 'reflect-metadata';
import type { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { LockModule, LockService, RedisLockStore } from 'nestjs-distributed-lock';
import type { PoolClient } from 'pg';
import request from 'supertest';
import { DataSource } from 'typeorm';
import { answered } from '../support/patient';
import { PostgresServer } from '../support/postgres-server';
import { RedisServer } from '../support/redis-server';
import { until } from '../support/until';
import { Payments } from './idempotency';
import { blocksOf, readPage } from './pages';

interface Answer {
  readonly status: number;
  readonly body: { readonly id?: number; readonly message?: string };
}

/** A lease that no stall of a machine ends, where its loss is not what is tested. */
const TTL = '60s';

let postgres: PostgresServer;
let redis: RedisServer;
let applications: readonly [INestApplication, INestApplication];
/** Locks the table of payments, so that a payment waits. */
let clerk: PoolClient;

beforeAll(async () => {
  [postgres, redis] = await Promise.all([PostgresServer.start(), RedisServer.start()]);
  await postgres.query(blocksOf(readPage('docs/recipes.md'), 'sql')[0] as string);
  await postgres.query('CREATE TABLE payments (id serial PRIMARY KEY, customer text, amount int CHECK (amount <> 13))');
  applications = [await startApplication(), await startApplication()];
  clerk = await postgres.pool().connect();
}, 120_000);
afterAll(async () => {
  clerk.release();
  for (const application of applications) {
    await application.close();
    await application.get(DataSource).destroy();
  }
  await Promise.all([postgres.stop(), redis.stop()]);
});

async function startApplication(): Promise<INestApplication> {
  const dataSource = await new DataSource({ type: 'postgres', url: postgres.url }).initialize();
  const module = await Test.createTestingModule({
    imports: [LockModule.forRoot({ store: new RedisLockStore(redis.url), ttl: TTL })],
    controllers: [Payments],
    providers: [{ provide: DataSource, useValue: dataSource }],
  }).compile();
  return module.createNestApplication({ logger: false }).init();
}

interface Sent {
  readonly key?: string;
  readonly amount?: number;
  readonly to?: 0 | 1;
  readonly path?: string;
  readonly customer?: string;
}

/** A payment to one of the applications; sent again where the store of the locks stood still. */
async function pay({ key, amount = 5, to = 0, path = 'payments', customer = '42' }: Sent): Promise<Answer> {
  for (;;) {
    const sent = request(applications[to].getHttpServer() as never).post(`/customers/${customer}/${path}`);
    const { status, body } = await (key === undefined ? sent : sent.set('Idempotency-Key', key)).send({ amount });
    if (status !== 503) {
      return { status, body: body as Answer['body'] };
    }
  }
}

async function paid(): Promise<unknown[]> {
  return postgres.query('SELECT id, amount FROM payments ORDER BY id');
}

async function waitingForTable(): Promise<number> {
  return (await postgres.query("SELECT FROM pg_locks WHERE NOT granted AND relation = 'payments'::regclass")).length;
}

/** Sends a payment that waits for its table; what it is answered once `goOn` was called. */
async function begin(sent: Sent): Promise<{ answer: Promise<Answer>; goOn: () => Promise<unknown> }> {
  await clerk.query('BEGIN; LOCK TABLE payments');
  const answer = pay(sent);
  await until('the payment waits', async () => (await waitingForTable()) === 1);
  return { answer, goOn: () => clerk.query('COMMIT') };
}

beforeEach(() => postgres.query('TRUNCATE payments, answers'));
// Ends a transaction that a failed test has left.
afterEach(() => clerk.query('ROLLBACK'));

test('of two requests at once in two applications one pays, and the other is told 409; repeated, it has the answer of the first', async () => {
  const { answer, goOn } = await begin({ key: 'twice' });
  expect(await pay({ key: 'twice', to: 1 })).toMatchObject({ status: 409, body: { message: expect.stringContaining('still runs') } });
  expect(await pay({ key: 'twice', to: 0 })).toMatchObject({ status: 409 });
  await goOn();
  const { status, body } = await answer;
  expect(status).toBe(201);
  expect(await paid()).toEqual([{ id: body.id, amount: 5 }]);
  expect(await pay({ key: 'twice', to: 1 })).toEqual({ status: 201, body });
  expect(await paid()).toHaveLength(1);
});

test('many requests at once, which wait, all have one answer', async () => {
  const sent = Array.from({ length: 12 }, (_, at) => pay({ key: 'many', to: at % 2 === 0 ? 0 : 1, path: 'patient-payments' }));
  const answers = await Promise.all(sent);
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
  expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1);
  expect(await paid()).toHaveLength(1);
});

test('a request that failed stores nothing, and may be repeated', async () => {
  expect(await pay({ key: 'fails', amount: 13 })).toMatchObject({ status: 500 });
  expect(await paid()).toEqual([]);
  expect(await pay({ key: 'fails', amount: 14, to: 1 })).toMatchObject({ status: 201 });
});

test('the same key with another body is told 422, of another customer it is another key, and without a key it is 400', async () => {
  expect(await pay({ key: 'body', amount: 5 })).toMatchObject({ status: 201 });
  expect(await pay({ key: 'body', amount: 6, to: 1 })).toMatchObject({ status: 422 });
  expect(await pay({ key: 'body', amount: 6, customer: '43' })).toMatchObject({ status: 201 });
  expect(await pay({})).toMatchObject({ status: 400 });
  expect(await pay({ key: 'x'.repeat(256) })).toMatchObject({ status: 400 });
  expect(await paid()).toHaveLength(2);
});

test('where the lock is lost, two payments run at once, and the primary key lets one of them commit', async () => {
  const { answer, goOn } = await begin({ key: 'lost' });
  const locks = applications[0].get(LockService);
  const held = await answered(() => locks.operations.inspect('payment:42:lost'));
  await answered(() => locks.operations.forceRelease('payment:42:lost', { fence: held?.fence as number }));
  const second = pay({ key: 'lost', to: 1, path: 'patient-payments' });
  await until('both wait', async () => (await waitingForTable()) === 2);
  await goOn();
  const statuses = [(await answer).status, (await second).status];
  expect(statuses).toContain(500);
  expect(await paid()).toHaveLength(1);
  expect(await pay({ key: 'lost' })).toMatchObject({ status: 201, body: { id: expect.any(Number) } });
  expect(await paid()).toHaveLength(1);
});
