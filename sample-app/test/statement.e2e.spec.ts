import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { LockService } from 'nestjs-distributed-lock';
import { setTimeout as sleep } from 'node:timers/promises';
import request from 'supertest';
import { RedisServer } from '../../test/support/redis-server';
import { until } from '../../test/support/until';
import { PgliteDatabase } from '../src/database/pglite.database.js';
import { createSchema } from '../src/database/schema.js';
import { Erp } from '../src/statement/erp.js';
import { initializedPglite } from './initialized-pglite.js';
import { startApplication } from './sample-application.js';

/**
 * Counts how many statements of each customer it prints at once, and the most that there were. It keeps those of the
 * first two customers until three of them have met: on a slow machine they might pass each other by.
 */
class CountingErp extends Erp {
  readonly #now = new Map<string, number>();
  readonly most = new Map<string, number>();

  override async print(customerId: string): Promise<string> {
    const now = (this.#now.get(customerId) ?? 0) + 1;
    this.#now.set(customerId, now);
    this.most.set(customerId, Math.max(now, this.most.get(customerId) ?? 0));
    if (['1', '2'].includes(customerId)) {
      await until('three statements at once', () => (this.most.get(customerId) as number) >= 3);
      await sleep(20);
    }
    this.#now.set(customerId, (this.#now.get(customerId) as number) - 1);
    return `Statement of customer ${customerId}`;
  }
}

describe('two applications that print statements, on one Redis', () => {
  const erp = new CountingErp();
  const apps: NestExpressApplication[] = [];
  let server: RedisServer;
  let impatient: NestExpressApplication;

  const print = (customer: number, app = impatient) => request(app.getHttpServer()).get(`/customers/${customer}/statement`);

  beforeAll(async () => {
    server = await RedisServer.start();
    const database = new PgliteDatabase(await initializedPglite());
    await createSchema(database);
    const start = async (lockWait: '2m' | '200ms') => {
      const app = await startApplication(database, {
        locks: { store: 'redis', url: server.url },
        lockWait,
        change: (builder) => builder.overrideProvider(Erp).useValue(erp),
      });
      apps.push(app);
      return app;
    };
    await start('2m');
    await start('2m');
    impatient = await start('200ms');
  }, 180_000);
  afterAll(async () => {
    await Promise.all(apps.map((app) => app.close()));
    await server.stop();
  });

  it('print three at once for each customer, and the others wait', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => print(1 + (index % 2), apps[Math.floor(index / 2) % 2] as NestExpressApplication)),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(answers[0]?.body).toEqual({ customerId: '1', balance: '100.00', statement: 'Statement of customer 1' });
    expect([erp.most.get('1'), erp.most.get('2')]).toEqual([3, 3]);
  });

  it('answer 429 with Retry-After and without the name of the key where three are printed all the time', async () => {
    const locks = (apps[0] as NestExpressApplication).get(LockService);
    const permits = await Promise.all(Array.from({ length: 3 }, () => locks.acquirePermit('statement:5', 3, { ttl: '4s' })));
    const answer = await print(5).expect(429);
    expect(permits.map((permit) => permit.isHeld())).toEqual([true, true, true]);
    expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    expect(Number(answer.headers['retry-after'])).toBeLessThanOrEqual(4);
    expect(answer.body).toMatchObject({ statusCode: 429, message: 'Too Many Requests', code: 'LOCK_NOT_ACQUIRED' });
    expect(answer.text).not.toContain('statement:');
    await print(6).expect(200);
    await permits.pop()?.release();
    await print(5).expect(200);
    await Promise.all(permits.map((permit) => permit.release()));
  });

  it('print while no Redis answers, which changes have to wait for', async () => {
    await server.kill();
    await print(1).expect(200);
    await request(impatient.getHttpServer()).post('/customers/1/credit').send({ amount: '1.00' }).expect(503);
  });
});
