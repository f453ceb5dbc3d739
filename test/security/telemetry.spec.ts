import 'reflect-metadata';
import { Test, type TestingModule } from '@nestjs/testing';
import { LockModule, LockService, RedisLockStore } from 'nestjs-distributed-lock';
import { otelTelemetry } from 'nestjs-distributed-lock/otel';
import { prometheusTelemetry } from 'nestjs-distributed-lock/prometheus';
import { hostname } from 'node:os';
import { Registry } from 'prom-client';
import { RedisServer } from '../support/redis-server';
import { Spans } from '../support/spans';
import { until } from '../support/until';

/** A key, which names a person. */
const KEY = 'balance:ann@example.org';

let server: RedisServer;
let spans: Spans;
let register: Registry;
const modules: TestingModule[] = [];
/** The secrets in the store of each lock, and those that tickets carry. */
let secrets: Set<string>;

beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(() => server.stop());
beforeEach(() => {
  spans = new Spans();
  register = new Registry();
  secrets = new Set();
});
afterEach(async () => {
  await Promise.all(modules.splice(0).map((module) => module.close()));
  spans.end();
});

async function start(keys: boolean): Promise<LockService> {
  const telemetry = [otelTelemetry({ tracerProvider: spans.provider, ...(keys && { keys }) }), prometheusTelemetry({ register })];
  const imports = [LockModule.forRoot({ store: new RedisLockStore(server.url), telemetry })];
  const module = await Test.createTestingModule({ imports }).compile();
  module.useLogger(false);
  modules.push(module);
  return module.get(LockService);
}

/** Owner and holds of the lock, and the ticket with each of its parts. */
async function remember(ticket: string): Promise<void> {
  const [stored = ''] = await server.client.keys('lock:lock:*');
  const fields = await server.client.hgetall(stored);
  const holds = Object.keys(fields).filter((field) => field.startsWith('hold:'));
  [fields['owner'] as string, ...holds.map((hold) => hold.slice('hold:'.length)), ticket, ...ticket.split('.')]
    .filter((secret) => secret.length >= 8 && Number.isNaN(Number(secret)))
    .forEach((secret) => secrets.add(secret));
}

/** A call that waits, one that is refused, one by a ticket, a loss, and a failure whose text names the key. */
async function use(locks: LockService, other: LockService): Promise<void> {
  let waiting: Promise<void> | undefined;
  await locks.withLock(KEY, { name: 'balance' }, async (lock) => {
    const ticket = lock.makeTicket();
    await remember(ticket);
    waiting = other.withLock(KEY, { name: 'balance' }, (waiter) => remember(waiter.makeTicket()));
    await other.withLock(KEY, { name: 'joins', ticket }, () => undefined);
    expect(await other.tryAcquire(KEY, { name: 'balance' })).toBeNull();
    await until('a waiter', async () => (await locks.operations.inspect(KEY))?.waiters.length === 1);
  });
  await waiting;
  await expect(locks.withLock(KEY, { name: 'balance' }, () => Promise.reject(new Error(`no account ${KEY}`)))).rejects.toThrow(
    'no account',
  );
  const lost = locks.withLock(KEY, { name: 'balance' }, async (lock) => {
    const { fence, signal } = lock;
    const ticket = lock.makeTicket();
    await remember(ticket);
    await other.operations.forceRelease(KEY, { fence });
    await until('the loss', () => signal.aborted);
  });
  await expect(lost).rejects.toMatchObject({ code: 'LOCK_LOST' });
}

test('owners, holds, tickets and keys are in no span, metric and health, and health names no host', async () => {
  const [locks, other] = [await start(false), await start(false)];
  await use(locks, other);
  const health = JSON.stringify(await locks.operations.health());
  const told = [spans.text, await register.metrics(), health].join('\n');
  expect(secrets.size).toBeGreaterThanOrEqual(6);
  expect([...secrets, KEY, 'ann'].filter((secret) => told.includes(secret))).toEqual([]);
  expect([hostname(), '127.0.0.1', String(server.port)].filter((name) => health.includes(name))).toEqual([]);
  expect(spans.named('wait_for lock balance').length).toBeGreaterThanOrEqual(2);
});

test('keys are in spans where they are asked for, and in nothing else', async () => {
  const [locks, other] = [await start(true), await start(true)];
  await use(locks, other);
  expect(spans.text).toContain(KEY);
  expect(spans.text).not.toContain('no account');
  expect(await register.metrics()).not.toContain(KEY);
  expect([...secrets].filter((secret) => spans.text.includes(secret))).toEqual([]);
});
