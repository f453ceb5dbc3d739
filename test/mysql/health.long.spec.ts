import { MySqlLockStore } from '../../lib/mysql/index';
import type { LockService } from '../../lib/nest/lock.service';
import { healthWith } from '../support/health-with';
import { makeLocks } from '../support/make-locks';
import { DATABASE, MySqlServer, PRODUCT_NAME } from '../support/mysql-server';
import { opened } from '../support/opened';
import { until } from '../support/until';

let server: MySqlServer;

beforeAll(async () => {
  server = await MySqlServer.start();
  await new MySqlLockStore(server.pool()).ensureSchema();
  await server.query(`CREATE USER 'plain'@'127.0.0.1'`);
  await server.query(`GRANT ALL ON ${DATABASE}.* TO 'plain'@'127.0.0.1'`);
});
afterAll(() => server.stop());
afterEach(async () => {
  await server.query('SET GLOBAL read_only = 0');
});

async function openLocks(user: string): Promise<LockService> {
  return makeLocks(await opened(new MySqlLockStore(server.pool({ user }))));
}

test('a server that is read-only is down without a call, and up again with its next answer', async () => {
  const locks = await openLocks('plain');
  expect(await healthWith(locks)).toMatchObject({ status: 'up', reachable: true, server: PRODUCT_NAME });
  await server.query('SET GLOBAL read_only = 1');
  expect(await healthWith(locks, 'readOnly')).toMatchObject({ reachable: true, refuses: 'readOnly' });
  expect(await locks.operations.health({ downAfter: '10m' })).toMatchObject({ status: 'degraded' });
  await until('down', async () => (await locks.operations.health({ downAfter: 300 })).status === 'down');
  await expect(locks.acquire('k', { wait: 0 })).rejects.toMatchObject({ code: 'LOCK_STORE' });
  await server.query('SET GLOBAL read_only = 0');
  expect(await healthWith(locks)).toMatchObject({ status: 'up' });
});

test('one that is read-only for others than this user is up', async () => {
  const locks = await openLocks('root');
  await server.query('SET GLOBAL read_only = 1');
  await locks.withLock('k', () => undefined);
  expect(await healthWith(locks)).toMatchObject({ status: 'up', reasons: [] });
});
