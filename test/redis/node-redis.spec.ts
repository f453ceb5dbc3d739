import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type LookupFunction } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { BasicClientSideCache, createClient, RESP_TYPES } from 'redis';
import { createClient as createClient6 } from 'redis-6';
import type { LockService } from '../../lib/nest/lock.service';
import type { RedisSource } from '../../lib/stores/redis/connection/redis-source';
import { RedisLockStore } from '../../lib/stores/redis/redis-lock-store';
import { makeLocks } from '../support/make-locks';
import { noWarning } from '../support/no-warning';
import { RedisServer } from '../support/redis-server';
import { saying } from '../support/saying';
import { TcpProxy } from '../support/tcp-proxy';
import { until } from '../support/until';

let server: RedisServer;
const stores: RedisLockStore[] = [];

beforeAll(async () => {
  server = await RedisServer.start();
});
afterEach(async () => {
  await Promise.all(stores.splice(0).map((store) => store.close()));
});
afterAll(() => server.stop());

async function openLocks(source: RedisSource, warn: (message: string) => void = noWarning): Promise<LockService> {
  const store = new RedisLockStore(source);
  stores.push(store);
  await store.open({ prefix: 'lock', warn });
  return makeLocks(store, { ttl: 60_000, wait: 60_000 });
}

const channelsOf = async ({ client }: RedisServer): Promise<number> =>
  ((await client.pubsub('CHANNELS', 'lock:wake:*')) as string[]).length;

/** Options with which a client sends again, keeps back, or answers in other words. */
const UNFIT = {
  RESP: 3,
  clientSideCache: new BasicClientSideCache({}),
  commandOptions: { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer, [RESP_TYPES.NUMBER]: String } },
  commandsQueueMaxLength: 1,
  pingInterval: 20,
  socket: { reconnectStrategy: () => 60_000, socketTimeout: 300 },
} as const;

test.each<[string, (url: string) => RedisSource]>([
  ['5', (url) => createClient({ ...UNFIT, url })],
  ['6', (url) => createClient6({ ...UNFIT, url } as never)],
])('options of a client of version %s that would break a guarantee are not those of the connections', async (_, make) => {
  // A ping of the client itself would be refused, and end the connection.
  await server.client.call('ACL', 'SETUSER', 'quiet', 'on', '>secret', '~*', '&*', '+@all', '-ping');
  const url = server.url.replace('//', '//quiet:secret@');
  const [locks, other] = await Promise.all([openLocks(make(url)), openLocks(make(url))]);
  let inside = 0;
  const calls = Array.from({ length: 40 }, (_each, at) =>
    (at % 2 === 0 ? locks : other).withLock('k', async ({ fence }) => {
      expect(++inside).toBe(1);
      await sleep(2);
      inside--;
      return fence;
    }),
  );
  const fences = await Promise.all(calls);
  expect(new Set(fences).size).toBe(40);
  // As long as an idle connection of such a client may last.
  await sleep(600);
  const before = await server.client.call('CLIENT', 'LIST');
  await locks.withLock('k', () => undefined);
  expect(idsIn(await server.client.call('CLIENT', 'LIST'))).toEqual(idsIn(before));
});

const idsIn = (list: unknown): string[] => [...String(list).matchAll(/^id=(\d+)/gm)].map(([, id]) => id as string);

test('a client that is not connected, or was closed by its owner, is duplicated all the same', async () => {
  const client = createClient({ url: server.url });
  const locks = await openLocks(client);
  expect(client.isOpen).toBe(false);
  await client.connect();
  const held = await locks.acquire('k');
  client.destroy();
  expect(await locks.tryAcquire('k')).toBeNull();
  await held.release();
  expect((await locks.inspect('k')) === null).toBe(true);
});

test('the database, the user and the password of a client are those of the connections', async () => {
  await server.client.call('ACL', 'SETUSER', 'locker', 'on', '>top secret', '~*', '&*', '+@all');
  const url = server.url.replace('//', `//locker:${encodeURIComponent('top secret')}@`);
  const locks = await openLocks(createClient({ url: `${url}/3` }));
  await using held = await locks.acquire('k');
  expect(held.isHeld()).toBe(true);
  const list = String(await server.client.call('CLIENT', 'LIST'));
  expect(list.split('\n').filter((line) => line.includes('user=locker') && line.includes(' db=3 '))).toHaveLength(2);
});

test('a password that is wrong is refused, and is in no message', async () => {
  const source = createClient({ url: server.url, username: 'nobody', password: 'hunter2' });
  const error: unknown = await openLocks(source).catch((refusal: unknown) => refusal);
  expect(error).toEqual(saying(/WRONGPASS.*Correct the user name and password/));
  expect(JSON.stringify([String(error), error])).not.toContain('hunter2');
});

test('a server behind a socket of the file system is one too', async () => {
  const path = join(tmpdir(), `node-redis-${process.pid}.sock`);
  const local = await RedisServer.start('--unixsocket', path);
  try {
    const locks = await openLocks(createClient({ socket: { path, tls: false } }));
    expect(await locks.withLock('k', () => 'ran')).toBe('ran');
    await stores.pop()?.close();
  } finally {
    await local.stop();
  }
});

test('a server that is not there yet is found when it comes', async () => {
  const proxy = await TcpProxy.start(server.port);
  proxy.mode = 'refuse';
  const warnings: string[] = [];
  const locks = await openLocks(createClient({ url: proxy.url }), (message) => warnings.push(message));
  expect(warnings).toEqual([expect.stringMatching(/^Redis did not answer: .*Locked calls fail until then/)]);
  const early = locks.withLock('k', () => 'ran');
  await sleep(300);
  proxy.mode = 'pass';
  expect(await early).toBe('ran');
  await until('the subscription', async () => (await locks.health()).hearsTurns === true);
  await stores.pop()?.close();
  await proxy.stop();
});

test('where the name of the server leads to another one, the subscription follows the commands', async () => {
  const next = await RedisServer.start('--bind', '127.0.0.1', '127.0.0.2');
  // The same port on another address leads to the first server.
  const way = createServer((socket) => {
    const to = connect(server.port, '127.0.0.1');
    socket.pipe(to).pipe(socket);
    [socket, to].forEach((end) => end.on('error', () => end.destroy()));
  }).listen(next.port, '127.0.0.3');
  await once(way, 'listening');
  const { port } = way.address() as AddressInfo;
  let address = '127.0.0.3';
  const lookup: LookupFunction = (_host, { all }, callback) =>
    all === true ? callback(null, [{ address, family: 4 }]) : callback(null, address, 4);
  try {
    const locks = await openLocks(createClient({ socket: { host: 'redis.test', port, lookup } as never }));
    await until('the subscription', async () => (await channelsOf(server)) > 0);
    address = '127.0.0.2';
    await server.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await locks.withLock('k', () => undefined);
    await until('a subscription at the next', async () => (await channelsOf(next)) > 0);
    await until('none at the first', async () => (await channelsOf(server)) === 0);
    await stores.pop()?.close();
  } finally {
    way.close();
    await next.stop();
  }
});

test('nothing keeps the process of a store that was closed', async () => {
  const before = await server.client.call('CLIENT', 'LIST');
  const locks = await openLocks(createClient({ url: server.url }));
  await locks.withLock('k', () => undefined);
  await stores.pop()?.close();
  await until('that its connections are gone', async () => {
    const now = idsIn(await server.client.call('CLIENT', 'LIST'));
    return now.every((id) => idsIn(before).includes(id));
  });
});
