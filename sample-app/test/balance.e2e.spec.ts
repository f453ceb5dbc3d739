import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { LockService } from 'nestjs-distributed-lock';
import request from 'supertest';
import { PgliteDatabase } from '../src/database/pglite.database.js';
import { createSchema } from '../src/database/schema.js';
import { initializedPglite } from './initialized-pglite.js';
import { startApplication } from './sample-application.js';

const UNKNOWN = { statusCode: 404, error: 'Not Found', message: 'There is no customer 99.' };
const BAD_AMOUNT = 'amount must be a positive amount as text, such as "12.50"';
const BAD_CUSTOMER = 'customerId must be the number of a customer as text, such as "1"';

describe('the balance service over HTTP', () => {
  let database: PgliteDatabase;
  let app: NestExpressApplication;

  const get = (path: string) => request(app.getHttpServer()).get(path);
  const post = (path: string, body: object) => request(app.getHttpServer()).post(path).send(body);
  const balanceOf = async (customer: number) => ((await get(`/customers/${customer}/balance`)).body as { balance: string }).balance;

  beforeAll(async () => {
    database = new PgliteDatabase(await initializedPglite());
    await createSchema(database);
    app = await startApplication(database, { lockWait: '200ms' });
  }, 180_000);
  beforeEach(async () => {
    await database.query('UPDATE balances SET amount = 10000, fence = 0');
  });
  afterAll(async () => {
    await app.close();
  });

  it('customers 1 to 10 start with 100.00', async () => {
    await get('/customers/1/balance').expect(200, { customerId: '1', balance: '100.00' });
    await get('/customers/10/balance').expect(200, { customerId: '10', balance: '100.00' });
    await get('/customers/11/balance').expect(404);
  });

  it('a second start leaves balances as they are', async () => {
    await post('/customers/1/credit', { amount: '1.00' }).expect(200);
    await createSchema(database);
    expect(await balanceOf(1)).toBe('101.00');
  });

  it('a credit and a debit answer with the new balance, to the cent', async () => {
    await post('/customers/1/credit', { amount: '0.10' }).expect(200, { customerId: '1', balance: '100.10' });
    await post('/customers/1/credit', { amount: '0.20' }).expect(200, { customerId: '1', balance: '100.30' });
    await post('/customers/1/debit', { amount: '100.29' }).expect(200, { customerId: '1', balance: '0.01' });
  });

  it('amounts beyond what a float can count stay exact', async () => {
    await post('/customers/1/credit', { amount: '999999999999.99' }).expect(200, { customerId: '1', balance: '1000000000099.99' });
  });

  it('a transfer moves the amount and answers with both balances', async () => {
    await post('/customers/1/transfer', { to: '2', amount: '30.00' }).expect(200, {
      from: { customerId: '1', balance: '70.00' },
      to: { customerId: '2', balance: '130.00' },
    });
  });

  it('an overdraft is 422 and changes nothing', async () => {
    const { body } = await post('/customers/1/debit', { amount: '100.01' }).expect(422);
    expect(body).toMatchObject({ message: 'Customer 1 has 100.00, which is less than 100.01.' });
    await post('/customers/1/transfer', { to: '2', amount: '100.01' }).expect(422);
    expect([await balanceOf(1), await balanceOf(2)]).toEqual(['100.00', '100.00']);
  });

  it('an unknown customer is 404, and a transfer to one gives the sender the money back', async () => {
    await get('/customers/99/balance').expect(404, UNKNOWN);
    await post('/customers/99/credit', { amount: '1.00' }).expect(404, UNKNOWN);
    await post('/customers/99/debit', { amount: '1.00' }).expect(404, UNKNOWN);
    await post('/customers/1/transfer', { to: '99', amount: '1.00' }).expect(404, UNKNOWN);
    expect(await balanceOf(1)).toBe('100.00');
  });

  it('a transfer to oneself is 400', async () => {
    const { body } = await post('/customers/1/transfer', { to: '1', amount: '1.00' }).expect(400);
    expect(body).toMatchObject({ message: 'to must be another customer' });
  });

  it.each([[12.5], ['0.00'], ['-1.00'], ['1.5'], ['1.005'], ['1e3'], [' 1.00'], ['1,00'], ['1234567890123.00'], [''], [null], [undefined]])(
    'the amount %j is 400 with a message that says what to send',
    async (amount) => {
      const { body } = await post('/customers/1/credit', { amount }).expect(400);
      expect(body).toMatchObject({ message: [BAD_AMOUNT] });
    },
  );

  it.each(['01', '0', 'abc', '1.0', '%20', '1234567890'])(
    'the customer %j is 400: each customer has one spelling, as it has one key',
    async (id) => {
      const { body } = await get(`/customers/${id}/balance`).expect(400);
      expect(body).toMatchObject({ message: [BAD_CUSTOMER] });
    },
  );

  it('a property that nobody knows is 400', async () => {
    const { body } = await post('/customers/1/credit', { amount: '1.00', currency: 'EUR' }).expect(400);
    expect(body).toMatchObject({ message: ['property currency should not exist'] });
  });

  it('a busy balance is 423 with Retry-After and without the name of the key', async () => {
    await using lock = await app.get(LockService).acquire('balance:5', { ttl: '4s' });
    const answer = await post('/customers/5/credit', { amount: '1.00' }).expect(423);
    expect(lock.isHeld()).toBe(true);
    expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    expect(Number(answer.headers['retry-after'])).toBeLessThanOrEqual(4);
    expect(answer.body).toEqual({ statusCode: 423, message: 'Locked', code: 'LOCK_NOT_ACQUIRED', retryAfterMs: expect.any(Number) });
    expect(answer.text).not.toContain('balance:');
    await get('/customers/5/balance').expect(200);
    await post('/customers/1/transfer', { to: '5', amount: '1.00' }).expect(423);
    await post('/customers/6/credit', { amount: '1.00' }).expect(200);
  });

  it('two balances are read together beside other readers, with no change between', async () => {
    const locks = app.get(LockService);
    const both = () => get('/customers/5/with/6');
    await locks.withLock('balance:5', { mode: 'read' }, async () => {
      await both().expect(200, [
        { customerId: '5', balance: '100.00' },
        { customerId: '6', balance: '100.00' },
      ]);
      await post('/customers/5/credit', { amount: '1.00' }).expect(423);
    });
    await locks.withLock('balance:6', async () => {
      await both().expect(423);
    });
    await get('/customers/5/with/0').expect(400);
  });
});
