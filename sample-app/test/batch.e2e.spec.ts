import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { LockService } from 'nestjs-distributed-lock';
import request from 'supertest';
import { PgliteDatabase } from '../src/database/pglite.database.js';
import { createSchema } from '../src/database/schema.js';
import { initializedPglite } from './initialized-pglite.js';
import { startApplication } from './sample-application.js';

const ACCOUNT = { customerNumber: '4', subAccountNumber: '1', currencyCode: 'EUR' };
const CREDIT = { type: 'credit', amount: '5.00' };

describe('batches over HTTP', () => {
  let database: PgliteDatabase;
  let app: NestExpressApplication;
  let impatient: NestExpressApplication;

  const post = (path: string, body: object) => request(app.getHttpServer()).post(path).send(body);

  beforeAll(async () => {
    database = new PgliteDatabase(await initializedPglite());
    await createSchema(database);
    app = await startApplication(database);
    impatient = await startApplication(database, { lockWait: '300ms' });
  }, 180_000);
  beforeEach(async () => {
    await database.query('UPDATE balances SET amount = 10000, fence = 0');
  });
  afterAll(async () => {
    await app.close();
    await impatient.close();
  });

  it('the entries are applied in their order', async () => {
    const entries = [CREDIT, { type: 'debit', amount: '105.00' }, CREDIT];
    await post('/batches', { account: ACCOUNT, entries }).expect(200, { customerId: '4', balance: '5.00' });
  });

  it('all of a batch is applied or nothing', async () => {
    await post('/batches', { account: ACCOUNT, entries: [CREDIT, { type: 'debit', amount: '105.01' }] }).expect(422);
    await request(app.getHttpServer()).get('/customers/4/balance').expect(200, { customerId: '4', balance: '100.00' });
  });

  it('an unknown customer is 404', async () => {
    await post('/batches', { account: { ...ACCOUNT, customerNumber: '99' }, entries: [CREDIT] }).expect(404);
  });

  it.each([
    ['LOCK:CUSTOMER_BALANCE:4:1:EUR', 'the account'],
    ['balance:4', 'the balance'],
  ])('a batch waits for %s, the key of %s', async (key) => {
    await using lock = await impatient.get(LockService).acquire(key);
    await request(impatient.getHttpServer())
      .post('/batches')
      .send({ account: ACCOUNT, entries: [CREDIT] })
      .expect(423);
    expect(lock.isHeld()).toBe(true);
  });

  it('batches of several sub-accounts and plain credits of one customer lose no update', async () => {
    const batches = ['1', '2', '3'].flatMap((subAccountNumber) =>
      Array.from({ length: 5 }, () => post('/batches', { account: { ...ACCOUNT, subAccountNumber }, entries: [CREDIT, CREDIT] })),
    );
    const credits = Array.from({ length: 15 }, () => post('/customers/4/credit', { amount: '1.00' }));
    const answers = await Promise.all([...batches, ...credits]);
    expect(answers.map((answer) => answer.status)).toEqual(answers.map(() => 200));
    await request(app.getHttpServer()).get('/customers/4/balance').expect(200, { customerId: '4', balance: '265.00' });
  }, 180_000);

  it.each([
    [{}, 'account must be an object'],
    [{ account: [], entries: [CREDIT] }, 'account must be an object'],
    [{ account: { ...ACCOUNT, customerNumber: '04' }, entries: [CREDIT] }, 'account.customerNumber must be the number of a customer'],
    [{ account: { ...ACCOUNT, subAccountNumber: '' }, entries: [CREDIT] }, 'account.subAccountNumber must be one to four digits'],
    [{ account: { ...ACCOUNT, currencyCode: 'USD' }, entries: [CREDIT] }, 'account.currencyCode must be one of the following values: EUR'],
    [{ account: ACCOUNT, entries: [] }, 'entries should not be empty'],
    [{ account: ACCOUNT, entries: [[]] }, 'each value in entries must be an object'],
    [{ account: ACCOUNT, entries: [null] }, 'each value in entries must be an object'],
    [{ account: ACCOUNT, entries: [{ type: 'gift', amount: '1.00' }] }, 'entries.0.type must be one of the following values'],
    [{ account: ACCOUNT, entries: [{ type: 'credit', amount: 1 }] }, 'entries.0.amount must be a positive amount'],
  ])('the batch %j is 400: %s', async (body, message) => {
    const answer = await post('/batches', body).expect(400);
    expect((answer.body as { message: string[] }).message.join('\n')).toContain(message);
  });
});
