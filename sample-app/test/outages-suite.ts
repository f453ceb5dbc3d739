import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { LockService } from 'nestjs-distributed-lock';
import request from 'supertest';
import { PostgresServer } from '../../test/support/postgres-server';
import { until } from '../../test/support/until';
import { PostgresDatabase } from '../src/database/postgres.database.js';
import { SHARED_PLACES, type TestPlace } from './lock-places.js';
import { startApplication } from './sample-application.js';
import { SampleProcess } from './sample-process.js';

/** The sample application, where connections and servers end in the middle of its transactions. */
export function outages(places: readonly (keyof typeof SHARED_PLACES)[]): void {
  describe.each(places)('the sample application in an outage, with locks in %s', outagesIn);
}

function outagesIn(name: string): void {
  let place: TestPlace;
  let server: PostgresServer;
  let sample: SampleProcess;
  let url: string;
  /** Has the lock that a transaction of the sample waits for. */
  let other: NestExpressApplication;

  const transactions = async (state: string): Promise<number> =>
    (
      await server.query(
        `SELECT pid FROM pg_stat_activity WHERE application_name NOT IN ('observer', 'holder') AND xact_start IS NOT NULL AND state = $1`,
        [state],
      )
    ).length;
  const reward = async (): Promise<number> => (await request(url).post('/customers/1/rewards').send({ points: 1 })).status;
  const transfer = async (): Promise<number> => (await request(url).post('/customers/1/transfer').send({ to: '2', amount: '1.00' })).status;

  /** Strikes while a transaction is open, and no statement of it runs: it waits for a lock. Resolves to the answer. */
  const strikeIdle = async (strike: () => Promise<unknown>): Promise<number> => {
    const lock = await other.get(LockService).acquire('points:1');
    const answer = reward();
    await until('a transaction that waits for the lock', async () => (await transactions('idle in transaction')) > 0);
    await strike();
    // The store of the locks may be down too.
    lock.release().catch(() => undefined);
    return answer;
  };
  /** Strikes while a statement of a transaction waits for a row. */
  const strikeActive = async (strike: () => Promise<unknown>): Promise<number> => {
    const holder = await server.pool({ application_name: 'holder' }).connect();
    holder.on('error', () => undefined);
    await holder.query('BEGIN');
    await holder.query('SELECT * FROM balances FOR UPDATE');
    const answer = transfer();
    await until('a statement that waits for a row', async () => (await transactions('active')) > 0);
    await strike();
    holder.release(true);
    return answer;
  };
  const worksAgain = async (): Promise<void> => {
    await until('that requests succeed', async () => (await reward()) === 200 && (await transfer()) === 200, 150_000);
  };

  beforeAll(async () => {
    place = await (SHARED_PLACES[name] as () => Promise<TestPlace>)();
    const { locks } = place;
    server = place.server ?? (await PostgresServer.start());
    sample = new SampleProcess({
      DATABASE_URL: server.url,
      LOCK_STORE: locks.store,
      ...('urls' in locks && { REDIS_URLS: locks.urls.join(',') }),
      ...(locks.store === 'redis' && { REDIS_URL: locks.url }),
      ...(locks.store === 'mysql' && { MYSQL_URL: locks.url }),
      ...('client' in locks && { REDIS_CLIENT: locks.client }),
    });
    url = await sample.url();
    other = await startApplication(new PostgresDatabase(server.url), { locks });
  }, 180_000);
  afterAll(async () => {
    await sample?.stop();
    await other?.close();
    await place?.stop();
    if (server !== place?.server) {
      await server?.stop();
    }
  });

  it.each(Object.entries({ 'waits for a lock': strikeIdle, 'waits for a row': strikeActive }))(
    'a connection that is ended while its transaction %s fails that request alone',
    async (_what, strike) => {
      await worksAgain();
      expect(await strike(() => server.terminateBackends(`xact_start IS NOT NULL AND application_name <> 'holder'`))).toBe(500);
      await worksAgain();
      expect(sample.isRunning).toBe(true);
    },
    180_000,
  );

  it.each(Object.entries({ 'waits for a lock': strikeIdle, 'waits for a row': strikeActive }))(
    'a database that is killed while a transaction %s is used again when it is back',
    async (_what, strike) => {
      await worksAgain();
      expect(await strike(() => server.kill())).toBeGreaterThanOrEqual(500);
      expect(await transfer()).toBeGreaterThanOrEqual(500);
      await server.start();
      await worksAgain();
      expect(sample.isRunning).toBe(true);
    },
    180_000,
  );

  it('a store of locks that is killed while a transaction waits for a lock is used again when it is back', async () => {
    await worksAgain();
    expect(await strikeIdle(() => place.fail())).toBeGreaterThanOrEqual(500);
    await place.restart();
    await worksAgain();
    expect(sample.isRunning).toBe(true);
  }, 240_000);
}
