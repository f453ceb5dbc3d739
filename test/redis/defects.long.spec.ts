import { createClient } from 'redis';
import type { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { loadWith, type Edit } from '../support/defective';
import { RedisServer } from '../support/redis-server';
import { areToldUnknown } from './lost-reply';

let server: RedisServer;

beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(() => server.stop());

/** Defects of connections by node-redis that have a call whose reply was lost believe that nothing was sent. */
const OF_LOST_REPLIES: Readonly<Record<string, Edit>> = {
  'the client says that its socket was closed': [
    'lib/redis/connection/node-redis/errors.ts',
    '/^The client is (closed|offline)/',
    '/^The client is (closed|offline)|^Socket closed|^Disconnects client/',
  ],
  'the connection ended': [
    'lib/redis/connection/node-redis/server-connection.ts',
    'client.sendCommand(words).then(withReplyErrors, refuse)',
    `client.sendCommand(words).then(withReplyErrors, (error) => {
      throw this.#client === client ? error : new Error(NO_CONNECTION);
    })`,
  ],
};

test.each(Object.entries(OF_LOST_REPLIES))('a reply that is lost shows where it counts as not sent that %s', async (_why, edit) => {
  const wrong = await loadWith<{ RedisLockStore: typeof RedisLockStore }>(`export { RedisLockStore } from './redis/redis-lock-store'`, [
    edit,
  ]);
  const told = await areToldUnknown(server, (url) => new wrong.RedisLockStore(createClient({ url })), ['alone']);
  expect(told).toEqual([false]);
});
