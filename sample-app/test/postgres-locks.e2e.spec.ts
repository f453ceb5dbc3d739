import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { LockService } from 'nestjs-distributed-lock';
import { setTimeout as sleep } from 'node:timers/promises';
import request from 'supertest';
import { PostgresServer } from '../../test/support/postgres-server';
import { until } from '../../test/support/until';
import { openDatabase } from '../src/database/open-database.js';
import { Settings } from '../src/settings.js';
import { startApplication } from './sample-application.js';

describe('an application with balances and locks in one PostgreSQL', () => {
  let server: PostgresServer;
  let settings: Settings;

  const connections = () =>
    server.query<{ pid: number }>(
      `SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND application_name <> 'observer'`,
    );

  beforeAll(async () => {
    server = await PostgresServer.start();
    settings = new Settings({ LOCK_STORE: 'postgres', DATABASE_URL: server.url });
  });
  afterAll(() => server.stop());

  it('leaves no connection when it is closed', async () => {
    const app = await startApplication(await openDatabase(settings), { locks: settings.locks });
    await request(app.getHttpServer()).post('/customers/1/credit').send({ amount: '1.00' }).expect(200);
    expect((await connections()).length).toBeGreaterThan(0);
    await app.close();
    // A backend ends a little later than its connection.
    await until('that the connections have ended', async () => (await connections()).length === 0);
  });

  it('keeps its locks while transactions have taken all connections of the other pool', async () => {
    const database = await openDatabase(settings);
    const app = await startApplication(database, { locks: settings.locks });
    let resolve!: () => void;
    const promise = new Promise<void>((done) => (resolve = done));
    const transactions = Array.from({ length: 10 }, () => database.transaction(() => promise));
    await app.get(LockService).withLock('balance:1', { ttl: 2_000 }, async (lock) => {
      await sleep(2_700);
      expect(lock.isHeld()).toBe(true);
    });
    resolve();
    await Promise.all(transactions);
    await app.close();
  });
});
