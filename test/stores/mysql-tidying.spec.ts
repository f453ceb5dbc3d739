import { MySqlLockStore } from '../../lib/mysql/index';
import { DATABASE, MySqlServer } from '../support/mysql-server';
import { TIDIED, tidiedAfterStep } from './tidied-after-step';

let server: MySqlServer;

beforeAll(async () => {
  server = await MySqlServer.start();
});
afterAll(() => server.stop());

test('expired done marks are deleted from the first on where the clock of the server was set back', async () => {
  await new MySqlLockStore(server.pool()).ensureSchema();
  expect(await tidiedAfterStep(server, DATABASE)).toEqual(TIDIED);
});
