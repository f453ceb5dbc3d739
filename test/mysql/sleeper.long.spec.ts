import type { Pool } from 'mysql2';
import { presenceName, Sleeper } from '../../lib/mysql/connections/sleeper';
import type { CallbackPool } from '../../lib/mysql/mysql-pool';
import { DATABASE, MySqlServer } from '../support/mysql-server';
import { until } from '../support/until';

let server: MySqlServer;

beforeAll(async () => {
  server = await MySqlServer.start();
  await server.query(`CREATE TABLE ${DATABASE}.turns (turn INT) ENGINE = InnoDB`);
});
afterAll(() => server.stop());

test.each([
  [
    'has autocommit off',
    (pool: Pool) => {
      pool.on('connection', (connection) => void connection.query('SET autocommit = 0', () => undefined));
    },
  ],
  [
    'has connections that were left inside a transaction',
    async (pool: Pool) => {
      const taken = await Promise.all([1, 2, 3].map(() => pool.promise().getConnection()));
      await Promise.all(taken.map((connection) => connection.query('START TRANSACTION WITH CONSISTENT SNAPSHOT')));
      taken.forEach((connection) => connection.release());
    },
  ],
])('a sleep sees a turn of after the one before it, where the pool %s', async (_, spoil) => {
  const pool = server.pool({ connectionLimit: 3 });
  await spoil(pool);
  const sleeper = new Sleeper(
    { pool: pool as unknown as CallbackPool, process: 'host:7:abcdef01', warn: () => undefined },
    () => undefined,
  );
  sleeper.prepare();
  await until('that it can be woken', () => {
    sleeper.prepare();
    return sleeper.isReady;
  });
  const isDue = `EXISTS (SELECT 1 FROM ${DATABASE}.turns)`;
  // The sleep in the server takes two seconds.
  expect(await sleeper.sleep(10_000, isDue)).toBe(false);
  await server.query(`INSERT INTO ${DATABASE}.turns VALUES (1)`);
  expect(await sleeper.sleep(10_000, isDue)).toBe(true);
  sleeper.end();
  await server.query(`DELETE FROM ${DATABASE}.turns`);
});

test('a process that was refused its name for a while can be woken afterwards, though its pool has room for one pair only', async () => {
  const process = 'host:8:abcdef02';
  const pool = server.pool({ connectionLimit: 3 });
  let made = 0;
  pool.on('connection', () => made++);
  const other = await server.pool().promise().getConnection();
  await other.query(`SELECT get_lock('${presenceName(process)}', 10)`);
  const sleeper = new Sleeper({ pool: pool as unknown as CallbackPool, process, warn: () => undefined }, () => undefined);
  const isTriedAgain = (): boolean => {
    sleeper.prepare();
    return made > 2;
  };
  await until('another attempt', isTriedAgain, 20_000);
  other.destroy();
  await until('that it can be woken', () => {
    sleeper.prepare();
    return sleeper.isReady;
  });
  sleeper.end();
});
