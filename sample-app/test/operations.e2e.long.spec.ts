import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { LockService } from 'nestjs-distributed-lock';
import request from 'supertest';
import { RedisServer } from '../../test/support/redis-server';
import { until } from '../../test/support/until';
import { PgliteDatabase } from '../src/database/pglite.database.js';
import { createSchema } from '../src/database/schema.js';
import { initializedPglite } from './initialized-pglite.js';
import { startApplication } from './sample-application.js';
import { SampleProcess } from './sample-process.js';

const NAME = 'balance:<customerId>';
const KEY = 'balance:1';
/** An id, of which an owner is made, or the digest that stands in the store. */
const OWNER = /[0-9a-f]{8}-[0-9a-f]{4}-|[0-9a-f]{64}|[\w-]{43}/;

/** A value in the text that Prometheus reads. */
function valueOf(text: string, metric: string, labels: Readonly<Record<string, string>>): number | undefined {
  const wanted = Object.entries(labels).map(([label, value]) => `distributed_lock_${label}="${value}"`);
  const line = text.split('\n').find((series) => series.startsWith(`${metric}{`) && wanted.every((label) => series.includes(label)));
  return line === undefined ? undefined : Number(line.slice(line.lastIndexOf(' ') + 1));
}

describe('the sample application in operation', () => {
  let server: RedisServer;
  let app: NestExpressApplication;

  beforeAll(async () => {
    server = await RedisServer.start();
    const database = new PgliteDatabase(await initializedPglite());
    await createSchema(database);
    app = await startApplication(database, { locks: { store: 'redis', url: server.url }, lockWait: '60s' });
  }, 180_000);
  afterAll(async () => {
    await app.close();
    await server.stop();
  });

  const metricsOf = async (url: string) => {
    const answer = await request(url).get('/metrics').expect(200);
    expect(answer.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
    return answer.text;
  };
  const creditOne = async (url: string) => (await request(url).post('/customers/1/credit').send({ amount: '1.00' })).status;

  /** Sends credits while `app` has the lock, and releases it when all of them wait. Resolves to their statuses. */
  const creditInContention = async (url: string, count: number) => {
    const lock = await app.get(LockService).acquire(KEY);
    const statuses = Array.from({ length: count }, () => creditOne(url));
    try {
      await until(
        `${count} credits that wait`,
        async () => valueOf(await metricsOf(url), 'distributed_lock_waiter_active', { name: NAME }) === count,
      );
    } finally {
      await lock.release();
    }
    return Promise.all(statuses);
  };

  it('/metrics counts two updates that waited, by their key template and without keys and owners', async () => {
    const url = await app.getUrl();
    expect(await creditInContention(url, 2)).toEqual([200, 200]);
    const text = await metricsOf(url);
    const labels = { name: NAME, contended: 'true' };
    expect(valueOf(text, 'distributed_lock_acquire_duration_seconds_count', labels)).toBe(2);
    expect(text).not.toContain(KEY);
    expect([...text.matchAll(/="([^"]*)"/g)].filter(([, value]) => OWNER.test(value as string))).toEqual([]);
  });

  it('with OTEL=console, an update that waited prints its wait and its lock below its request, without keys and owners', async () => {
    const sample = new SampleProcess({ OTEL: 'console', LOCK_STORE: 'redis', REDIS_URL: server.url });
    try {
      const url = await sample.url();
      expect(await creditInContention(url, 1)).toEqual([200]);
      const update = /^trace=(\w+) span=(\w+) POST \/customers\/:customerId\/credit [\d.]+ ms$/m;
      await until('the span of the update', () => update.test(sample.output));
      const [, trace, span] = update.exec(sample.output) as RegExpExecArray;
      const lines = sample.output.split('\n').filter((line) => line.startsWith(`trace=${trace} parent=${span} span=`));
      expect(lines).toEqual([
        expect.stringMatching(/wait_for lock balance:<customerId> [\d.]+ ms name=.*, blocked_by=\S+ \(pid \d+\)$/),
        expect.stringMatching(/ lock balance:<customerId> [\d.]+ ms name=.*, contended=true, code\.function\.name=BalanceService\.credit$/),
      ]);
      expect(sample.output).not.toContain(KEY);
      expect(sample.output).not.toMatch(OWNER);
    } finally {
      await sample.stop();
    }
  }, 240_000);

  // The last one: its server stays down.
  it('/health/ready is 200 while the store of the locks answers, and 503 when it has been down for long', async () => {
    const ready = () => request(app.getHttpServer()).get('/health/ready');
    // Until then it may not hear of turns yet.
    await until('that the locks are up', async () => {
      const { body } = await ready();
      return (body as { details?: { locks?: { status: string } } }).details?.locks?.status === 'up';
    });
    const { body } = await ready().expect(200);
    expect(body).toMatchObject({ status: 'ok', details: { locks: { status: 'up', reachable: true, reasons: [] } } });
    await server.kill();
    // Five seconds, which a failover may take.
    await until('503', async () => (await ready()).status === 503, 60_000);
    const answer = await ready().expect(503);
    expect(answer.body).toMatchObject({
      status: 'error',
      error: { locks: { status: 'down', reachable: false, reasons: ['unreachable'] } },
    });
  }, 120_000);
});

it('another value of OTEL stops the start with one line', async () => {
  const sample = new SampleProcess({ OTEL: 'jaeger' });
  expect(await sample.exitCode).toBe(1);
  expect(sample.output).toBe('OTEL is "jaeger". Set it to console for traces on the console, or leave it out for none.\n');
});
