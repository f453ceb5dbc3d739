import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { TransactionEnd } from 'nestjs-distributed-lock';
import request from 'supertest';
import { PostgresServer } from '../../test/support/postgres-server';
import { PostgresDatabase } from '../src/database/postgres.database.js';
import { createSchema } from '../src/database/schema.js';
import { startApplication } from './sample-application.js';

/** As many at a time as the database has connections: to wait for one is an error after five seconds. */
const AT_A_TIME = 10;
const REWARDS = 3 * AT_A_TIME;

/** The control: an application whose locks know of no transaction. */
class UnfollowedDatabase extends PostgresDatabase {
  override readonly transactionEnd: TransactionEnd = () => undefined;
}

describe('two applications that open a transaction above a locked method, on one PostgreSQL', () => {
  let server: PostgresServer;
  let followed: readonly NestExpressApplication[];
  let unfollowed: readonly NestExpressApplication[];

  const startTwo = async (Database: typeof PostgresDatabase): Promise<readonly NestExpressApplication[]> => {
    const database = new Database(server.url);
    await createSchema(database);
    const locks = { store: 'postgres', url: server.url } as const;
    return [await startApplication(database, { locks }), await startApplication(database, { locks })];
  };
  const rewardSome = (apps: readonly NestExpressApplication[]): Promise<number[]> =>
    Promise.all(
      Array.from({ length: AT_A_TIME }, async (_, index) => {
        const app = apps[index % apps.length] as NestExpressApplication;
        return (await request(app.getHttpServer()).post('/customers/1/rewards').send({ points: 1 })).status;
      }),
    );
  const rewardAll = async (apps: readonly NestExpressApplication[]): Promise<number[]> => {
    const statuses: number[] = [];
    while (statuses.length < REWARDS) {
      statuses.push(...(await rewardSome(apps)));
    }
    return statuses;
  };
  const totals = async (): Promise<{ total: number; rewarded: number } | undefined> =>
    (
      await server.query<{ total: number; rewarded: number }>(
        'SELECT total, (SELECT sum(points)::int FROM rewards) AS rewarded FROM points WHERE customer_id = $1',
        ['1'],
      )
    )[0];

  beforeAll(async () => {
    server = await PostgresServer.start();
    followed = await startTwo(PostgresDatabase);
    unfollowed = await startTwo(UnfollowedDatabase);
  }, 180_000);
  beforeEach(() => server.query('TRUNCATE points, rewards'));
  afterAll(async () => {
    await Promise.all([...followed, ...unfollowed].map((app) => app.close()));
    await server.stop();
  });

  it('lose no update', async () => {
    const answers = await rewardAll(followed);
    expect(answers).toEqual(answers.map(() => 200));
    expect(await totals()).toEqual({ total: REWARDS, rewarded: REWARDS });
    const [app] = followed as [NestExpressApplication];
    expect((await request(app.getHttpServer()).get('/customers/1/points')).body).toEqual({ points: REWARDS });
  }, 180_000);

  it('without the option, lose updates', async () => {
    const answers = await rewardAll(unfollowed);
    expect(answers).toEqual(answers.map(() => 200));
    const { total, rewarded } = (await totals()) as { total: number; rewarded: number };
    expect(rewarded).toBe(REWARDS);
    expect(total).toBeLessThan(REWARDS);
  }, 180_000);
});
