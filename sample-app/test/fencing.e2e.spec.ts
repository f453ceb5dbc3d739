import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { LockConfigurationError, LockService } from 'nestjs-distributed-lock';
import { setTimeout as sleep } from 'node:timers/promises';
import request from 'supertest';
import { StaleFenceError } from '../src/balance/balance.errors.js';
import { BalanceRepository } from '../src/balance/balance.repository.js';
import { PgliteDatabase } from '../src/database/pglite.database.js';
import { createSchema } from '../src/database/schema.js';
import { initializedPglite } from './initialized-pglite.js';
import { startApplication } from './sample-application.js';

/** Two applications whose locks know nothing of each other, as after a lease that ended while its owner was paused. */
describe('a balance behind a fence', () => {
  let database: PgliteDatabase;
  let paused: NestExpressApplication;
  let next: NestExpressApplication;

  const balanceOf = async (customer: number) => {
    const { body } = await request(next.getHttpServer()).get(`/customers/${customer}/balance`);
    return (body as { balance: string }).balance;
  };

  /** Each application counts its fences by the clock: those of one millisecond would be equal. */
  const laterFence = () => sleep(2);

  beforeAll(async () => {
    database = new PgliteDatabase(await initializedPglite());
    await createSchema(database);
    paused = await startApplication(database);
    next = await startApplication(database);
  }, 180_000);
  beforeEach(async () => {
    await database.query('UPDATE balances SET amount = 10000, fence = 0');
  });
  afterAll(async () => {
    await paused.close();
    await next.close();
  });

  it('an owner that was overtaken after its read cannot write', async () => {
    const repository = paused.get(BalanceRepository);
    const overtaken = paused.get(LockService).withLock('balance:1', async () => {
      const before = await repository.claim('1');
      await laterFence();
      await request(next.getHttpServer()).post('/customers/1/credit').send({ amount: '5.00' }).expect(200);
      await repository.write('1', before + 700n);
    });
    await expect(overtaken).rejects.toThrow(StaleFenceError);
    expect(await balanceOf(1)).toBe('105.00');
  });

  it('an owner that was overtaken before its read is refused there', async () => {
    const repository = paused.get(BalanceRepository);
    const overtaken = paused.get(LockService).withLock('balance:1', async () => {
      await laterFence();
      await request(next.getHttpServer()).post('/customers/1/credit').send({ amount: '5.00' }).expect(200);
      await repository.claim('1');
    });
    await expect(overtaken).rejects.toThrow(StaleFenceError);
  });

  it('a read of the next owner keeps the overtaken one from writing, though nothing was written yet', async () => {
    const overtaken = paused.get(LockService).withLock('balance:1', async () => {
      const before = await paused.get(BalanceRepository).claim('1');
      await laterFence();
      await next.get(LockService).withLock('balance:1', () => next.get(BalanceRepository).claim('1'));
      await paused.get(BalanceRepository).write('1', before + 700n);
    });
    await expect(overtaken).rejects.toThrow(StaleFenceError);
    expect(await balanceOf(1)).toBe('100.00');
  });

  it('a request with an old fence is 409, and a transfer with one writes neither half', async () => {
    await database.query('UPDATE balances SET fence = $1 WHERE customer_id = $2', [Number.MAX_SAFE_INTEGER, '2']);
    const { body } = await request(next.getHttpServer()).post('/customers/2/credit').send({ amount: '1.00' }).expect(409);
    expect(body).toMatchObject({
      message: 'The balance of customer 2 was changed by somebody else meanwhile. Nothing was written; try again.',
    });
    await request(next.getHttpServer()).post('/customers/1/transfer').send({ to: '2', amount: '1.00' }).expect(409);
    expect([await balanceOf(1), await balanceOf(2)]).toEqual(['100.00', '100.00']);
  });

  it('code that forgot the lock cannot read for a change', async () => {
    await expect(next.get(BalanceRepository).claim('1')).rejects.toThrow(LockConfigurationError);
  });
});
