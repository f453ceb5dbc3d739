import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { NestExpressApplication } from '@nestjs/platform-express';
import request from 'supertest';
import type { Database } from '../src/database/database.js';
import { PostgresServer } from '../../test/support/postgres-server';
import { PostgresDatabase } from '../src/database/postgres.database.js';
import { createSchema } from '../src/database/schema.js';
import { SHARED_PLACES, type TestPlace } from './lock-places.js';
import { startApplication, type Choices } from './sample-application.js';
import { withoutLock } from './unlocked-balances.js';

/** As many without locks as the database has connections: to wait for one is an error after five seconds. */
const AT_A_TIME = 10;

/** Sends to the applications in turn; resolves to the status. */
async function post(apps: readonly NestExpressApplication[], index: number, path: string, body: object): Promise<number> {
  const app = apps[index % apps.length] as NestExpressApplication;
  return (await request(app.getHttpServer()).post(path).send(body)).status;
}

function credit(apps: readonly NestExpressApplication[], times: number): Promise<number[]> {
  return Promise.all(Array.from({ length: times }, (_, index) => post(apps, index, '/customers/1/credit', { amount: '1.00' })));
}

/** The tests of two applications on one database, with their locks in each of these places. */
export function twoApplications(places: readonly (keyof typeof SHARED_PLACES)[]): void {
  describe.each(places)('two applications on one database, with locks in %s', twoApplicationsIn);
}

function twoApplicationsIn(name: string): void {
  const places: TestPlace[] = [];
  /** Where the balances are, if not beside the locks. */
  let server: PostgresServer | undefined;
  let database: Database;
  let locked: readonly NestExpressApplication[];
  let unlocked: readonly NestExpressApplication[];
  const apps: NestExpressApplication[] = [];

  const startPlace = async () => {
    const place = await (SHARED_PLACES[name] as () => Promise<TestPlace>)();
    places.push(place);
    return place;
  };
  const startOne = async (choices: Choices) => {
    const app = await startApplication(database, choices);
    apps.push(app);
    return app;
  };
  const startTwo = async (choices: Choices) => [await startOne(choices), await startOne(choices)];
  const balanceOf = async (customer: number) => {
    const { body } = await request((locked[0] as NestExpressApplication).getHttpServer()).get(`/customers/${customer}/balance`);
    return Number((body as { balance: string }).balance);
  };

  beforeAll(async () => {
    const { locks } = await startPlace();
    if (locks.store !== 'postgres') {
      server = await PostgresServer.start();
    }
    database = new PostgresDatabase(locks.store === 'postgres' ? locks.url : (server as PostgresServer).url);
    await createSchema(database);
    locked = await startTwo({ locks });
    unlocked = await startTwo({ locks, change: withoutLock });
  }, 180_000);
  beforeEach(async () => {
    await database.query('UPDATE balances SET amount = 10000, fence = 0');
  });
  afterAll(async () => {
    await Promise.all(apps.map((app) => app.close()));
    await Promise.all(places.map((place) => place.stop()));
    await server?.stop();
  });

  it('a hundred parallel credits give the exact sum', async () => {
    const answers = await credit(locked, 100);
    expect(answers).toEqual(answers.map(() => 200));
    expect(await balanceOf(1)).toBe(200);
  }, 180_000);

  it('with the decorator removed, a hundred credits, ten in parallel, lose updates', async () => {
    const answers: number[] = [];
    while (answers.length < 100) {
      answers.push(...(await credit(unlocked, AT_A_TIME)));
    }
    expect(answers).toEqual(answers.map(() => 200));
    expect(await balanceOf(1)).toBeLessThan(200);
  }, 180_000);

  it('opposite transfers in parallel all finish and conserve the sum', async () => {
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, index) => {
        const [from, to] = index % 4 < 2 ? ['1', '2'] : ['2', '1'];
        return post(locked, index, `/customers/${from}/transfer`, { to, amount: '1.00' });
      }),
    );
    expect(answers).toEqual(answers.map(() => 200));
    expect([await balanceOf(1), await balanceOf(2)]).toEqual([100, 100]);
  }, 180_000);

  it('an application whose locks are out of reach answers 503 to changes and still shows balances', async () => {
    const other = await startPlace();
    const app = await startOne({ locks: other.locks, lockWait: '200ms' });
    await other.fail();
    expect(await post([app], 0, '/customers/1/credit', { amount: '1.00' })).toBe(503);
    await request(app.getHttpServer()).get('/customers/1/balance').expect(200);
  });
}
