import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { LockService } from 'nestjs-distributed-lock';
import request from 'supertest';
import { PostgresServer } from '../../test/support/postgres-server';
import { until } from '../../test/support/until';
import { openDatabase } from '../src/database/open-database.js';
import { Settings } from '../src/settings.js';
import { startApplication } from './sample-application.js';

/** A third of it passes until the first renewal, and two thirds are left for a machine that stands still. */
const TTL_MS = 6_000;

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
    let begun = 0;
    const begin = async () => {
      begun++;
      await promise;
    };
    const transactions = Promise.all(Array.from({ length: 10 }, () => database.transaction(begin)));
    await until('that they have all connections', () => begun === 10);
    await app.get(LockService).withLock('balance:1', { ttl: TTL_MS }, async (lock) => {
      const startedAt = performance.now();
      // It lasts longer than it was granted for.
      const isRenewed = () => lock.remainingMs() + performance.now() - startedAt > TTL_MS;
      await until('a renewal, or the loss', () => isRenewed() || lock.signal.aborted);
      expect(lock.isHeld()).toBe(true);
    });
    resolve();
    await transactions;
    await app.close();
  });
});
