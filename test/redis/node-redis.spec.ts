import { once } from 'node:events';
import { connect, createServer, type LookupFunction, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ClientRegistry } from '@redis/client/dist/lib/opentelemetry/client-registry';
import { Redis } from 'ioredis';
import { BasicClientSideCache, createClient, createCluster, RESP_TYPES } from 'redis';
import { createClient as createClient6 } from 'redis-6';
import type { HoldRecord } from '../../lib/core/seam/lock-store';
import type { LockError } from '../../lib/core/words/errors';
import type { LockService } from '../../lib/nest/lock.service';
import type { RedisSource } from '../../lib/redis/connection/redis-source';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { makeLocks } from '../support/make-locks';
import { newHold } from '../support/new-hold';
import { noWarning } from '../support/no-warning';
import { RedisServer } from '../support/redis-server';
import { refusalOf } from '../support/refusal-of';
import { saying } from '../support/saying';
import { TcpProxy } from '../support/tcp-proxy';
import { searched } from '../support/searched';
import { until } from '../support/until';
import { areToldUnknown } from './lost-reply';

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

/** How many clients node-redis has for OpenTelemetry. */
function registered(): number {
  const { instance } = ClientRegistry as unknown as { instance: { getAll(): Iterable<unknown> } };
  return [...instance.getAll()].length;
}

const channelsOf = async ({ client }: RedisServer): Promise<number> =>
  ((await client.pubsub('CHANNELS', 'lock:wake:*')) as string[]).length;

/** Options with which a client sends again, keeps back, or answers in other words. */
const UNFIT = {
  RESP: 3,
  clientSideCache: new BasicClientSideCache({}),
  commandOptions: { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer, [RESP_TYPES.NUMBER]: String } },
  commandsQueueMaxLength: 1,
  maintNotifications: 'enabled',
  pingInterval: 20,
  // Only a node of a cluster knows READONLY.
  readonly: true,
  socket: { reconnectStrategy: () => 60_000, socketTimeout: 300 },
} as const;

test.each<[string, (url: string) => RedisSource]>([
  ['5', (url) => createClient({ ...UNFIT, url })],
  ['6', (url) => createClient6({ ...UNFIT, url } as never)],
  ['5 that is told of invalid keys', (url) => createClient({ ...UNFIT, clientSideCache: undefined, emitInvalidate: true, url } as never)],
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
  let [before, after] = ['', ''];
  // Once more where the machine stood still for so long that a connection was made anew.
  for (let round = 0; round < 4 && (round === 0 || idsIn(after).join() !== idsIn(before).join()); round++) {
    before = await ownOf(server, 'quiet');
    // As long as an idle connection of such a client may last, and twice that.
    await sleep(600);
    await locks.withLock('k', () => undefined);
    await locks.withLock('searched', async () => {
      expect(await searched(stores[0] as RedisLockStore)).toEqual(['searched']);
    });
    // A search has a connection of its own, which ends with it.
    await until('as many connections as before', async () => {
      after = await ownOf(server, 'quiet');
      return idsIn(after).length === idsIn(before).length;
    });
  }
  expect(idsIn(after)).toEqual(idsIn(before));
  expect(after.match(/\bresp=2\b/g)).toHaveLength(idsIn(after).length);
});

/** The lines of CLIENT LIST with a user. */
const ownOf = async ({ client }: RedisServer, user: string): Promise<string> =>
  String(await client.call('CLIENT', 'LIST')).split('\n').filter((line) => line.includes(` user=${user} `)).join('\n'); // prettier-ignore

const idsIn = (list: unknown): string[] => [...String(list).matchAll(/^id=(\d+)/gm)].map(([, id]) => id as string);

test('what a client does where its connection breaks is not asked of it, and keeps no process', async () => {
  const proxy = await TcpProxy.start(server.port);
  let asked = 0;
  const locks = await openLocks(createClient({ url: proxy.url, socket: { reconnectStrategy: () => ++asked * 60_000 } }));
  proxy.mode = 'refuse';
  await expect(locks.acquire('k', { wait: 300 })).rejects.toMatchObject({ code: 'LOCK_STORE' });
  proxy.mode = 'pass';
  await locks.withLock('k', { wait: 5_000 }, () => undefined);
  expect(asked).toBe(0);
  await stores.pop()?.close();
  await proxy.stop();
});

test('a database that the server does not have fails the start, and names what to correct', async () => {
  await expect(openLocks(createClient({ url: server.url, database: 99 }))).rejects.toThrow(saying(/DB index.*Correct the database/));
});

test('what was asked for before the end is still sent', async () => {
  const store = new RedisLockStore(createClient({ url: server.url }));
  await store.open({ prefix: 'lock', warn: noWarning });
  const hold = newHold('last', { owner: 'owner', id: 'hold', ttlMs: 60_000, limitMs: 1_000 });
  const granted = await store.acquire(hold);
  const released = store.release({ ...hold, ...granted } as HoldRecord).catch(() => undefined);
  await store.close();
  await released;
  await until('the release', async () => (await server.client.exists('lock:lock:{last}')) === 0);
});

test('an error inside the reply to a batch is an answer', async () => {
  const locks = await openLocks(createClient({ url: server.url }));
  await server.client.config('SET', 'maxmemory', 1);
  try {
    const refusals = await Promise.all(
      ['one', 'two', 'three'].map((key) => locks.acquire(key, { wait: 0 }).catch((error: unknown) => error)),
    );
    const known = expect.objectContaining({ code: 'LOCK_STORE', unknown: false, detail: expect.stringContaining('OOM') as string });
    expect(refusals).toEqual([known, known, known]);
  } finally {
    await server.client.config('SET', 'maxmemory', 0);
  }
});

test.each<[string, (url: string) => RedisSource]>([
  ['5', (url) => createClient({ url })],
  ['6', (url) => createClient6({ url }) as never],
])('a reply that is lost with its connection leaves open what happened, by version %s, for each call of a batch', async (_, make) => {
  const newStore = (url: string): RedisLockStore => new RedisLockStore(make(url));
  expect(await areToldUnknown(server, newStore, ['alone'])).toEqual([true]);
  expect(await areToldUnknown(server, newStore, ['one', 'two', 'three'])).toEqual([true, true, true]);
});

test('a store that is closed while it connects leaves no connection', async () => {
  const before = idsIn(await server.client.call('CLIENT', 'LIST'));
  const proxy = await TcpProxy.start(server.port);
  let lookedUp: (() => void) | undefined;
  const lookup: LookupFunction = (_host, { all }, callback) => {
    lookedUp = () => (all === true ? callback(null, [{ address: '127.0.0.1', family: 4 }]) : callback(null, '127.0.0.1', 4));
  };
  const store = new RedisLockStore(createClient({ socket: { host: 'redis.test', port: proxy.port, lookup } as never }));
  const opened = store.open({ prefix: 'lock', warn: () => undefined }).catch(() => undefined);
  await until('the look-up', () => lookedUp !== undefined);
  await store.close();
  lookedUp?.();
  await opened;
  await sleep(300);
  const now = idsIn(await server.client.call('CLIENT', 'LIST'));
  expect(now.filter((id) => !before.includes(id))).toEqual([]);
  await proxy.stop();
});

test('the keyPrefix of a client of version 6 goes before its keys', async () => {
  const locks = await openLocks(createClient6({ url: server.url, keyPrefix: 'app:' }) as never);
  await locks.withLock('k', async () => expect(await server.client.exists('app:lock:lock:{k}')).toBe(1));
});

test('a client that is not connected, or was closed by its owner, is duplicated all the same', async () => {
  const client = createClient({ url: server.url });
  const locks = await openLocks(client);
  expect(client.isOpen).toBe(false);
  await client.connect();
  const held = await locks.acquire('k');
  client.destroy();
  expect(await locks.tryAcquire('k')).toBeNull();
  await held.release();
  expect((await locks.operations.inspect('k')) === null).toBe(true);
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

test('the database is that of the options of a client, also where the client itself has selected another one', async () => {
  const clients = [createClient({ url: server.url }), createClient6({ url: server.url })] as const;
  for (const client of clients) {
    await client.connect();
    await client.select(4);
  }
  const ioredis = new Redis(server.url);
  await ioredis.select(4);
  for (const source of [...clients, ioredis]) {
    const locks = await openLocks(source as RedisSource);
    await locks.withLock('selected', async () => expect(await server.client.exists('lock:lock:{selected}')).toBe(1));
  }
  clients.forEach((client) => client.destroy());
  ioredis.disconnect();
});

describe.each([
  ['5', createClient],
  ['6', createClient6 as unknown as typeof createClient],
])('credentials of a client of version %s', (_, create) => {
  test('whose provider rejects with a text are an outage that it explains', async () => {
    let isSealed = false;
    const credentials = async (): Promise<{ password: string }> => {
      if (isSealed) {
        // oxlint-disable-next-line typescript/only-throw-error -- a provider may
        throw 'the vault is sealed';
      }
      return { password: 'any' };
    };
    const locks = await openLocks(create({ url: server.url, credentialsProvider: { type: 'async-credentials-provider', credentials } }));
    await locks.withLock('k', () => undefined);
    isSealed = true;
    await server.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    const reason = (): Promise<string> => locks.withLock('k', { wait: 0 }, () => 'none').catch(({ detail }: LockError) => detail);
    await until('that calls fail for that reason', async () => (await reason()).includes('the vault is sealed'));
    isSealed = false;
    expect(await locks.withLock('k', () => 'ran')).toBe('ran');
  });

  test('with a password alone are those of the default user, also where it needs none', async () => {
    const locks = await openLocks(create({ url: server.url.replace('//', '//:any@') }));
    expect(await locks.withLock('k', () => 'ran')).toBe('ran');
  });

  test('that are new are not sent on the connection of the subscription, which would be refused', async () => {
    const listeners: ((credentials: object) => void)[] = [];
    const refused: unknown[] = [];
    const subscribe = async ({ onNext }: { onNext(credentials: object): void }): Promise<unknown> => {
      listeners.push(onNext);
      return [{ username: 'default', password: 'any' }, { dispose: () => undefined }];
    };
    const onReAuthenticationError = (error: unknown): unknown => refused.push(error);
    const provider = { type: 'streaming-credentials-provider', subscribe, onReAuthenticationError };
    const locks = await openLocks(create({ url: server.url, credentialsProvider: provider as never }));
    await until('the subscription', async () => (await locks.operations.health()).hearsTurns === true);
    await server.client.config('RESETSTAT');
    listeners.forEach((onNext) => onNext({ username: 'default', password: 'other' }));
    // On the other connection they are.
    await until('AUTH', async () => ((await server.commandCounts()).get('auth') ?? 0) > 0);
    await locks.withLock('k', () => undefined);
    expect(refused).toEqual([]);
  });
});

describe.each([
  ['5', createClient],
  ['6', createClient6 as unknown as typeof createClient],
])('a provider of credentials of a client of version %s that takes long', (_, create) => {
  /** Longer than a server may take for its first replies. */
  const LONG_MS = 1_500;
  const answer = { username: 'default', password: '' };
  // The start does not wait for so long, and says so.
  const warn = (): void => undefined;

  test('is waited for', async () => {
    const credentials = (): Promise<typeof answer> => sleep(LONG_MS, answer);
    const locks = await openLocks(
      create({ url: server.url, credentialsProvider: { type: 'async-credentials-provider', credentials } }),
      warn,
    );
    expect(await locks.withLock('k', () => 'ran')).toBe('ran');
  });

  test('to subscribe has as many subscriptions as there are connections, and none in the end', async () => {
    let active = 0;
    const subscribe = async (): Promise<[typeof answer, { dispose(): void }]> => {
      await sleep(LONG_MS);
      active++;
      return [answer, { dispose: () => void active-- }];
    };
    const provider = { type: 'streaming-credentials-provider', subscribe, onReAuthenticationError: () => undefined } as const;
    const locks = await openLocks(create({ url: server.url, credentialsProvider: provider }), warn);
    for (let cuts = 0; cuts < 2; cuts++) {
      expect(await locks.withLock('k', () => 'ran')).toBe('ran');
      await until('both connections', async () => (await locks.operations.health()).hearsTurns === true && active === 2);
      await server.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      await server.client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
      await until('that both are lost', () => active === 0);
    }
    // The next ones are asked for by now, or will be.
    await stores.pop()?.close();
    await sleep(2 * LONG_MS);
    expect(active).toBe(0);
  });
});

test('a password that is wrong is refused, and is in no message', async () => {
  const source = createClient({ url: server.url, username: 'nobody', password: 'hunter2' });
  const error = await refusalOf(() => openLocks(source));
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
  await until('the subscription', async () => (await locks.operations.health()).hearsTurns === true);
  await stores.pop()?.close();
  await proxy.stop();
});

describe('where the name of the server leads to another one', () => {
  let next: RedisServer;
  let way: Server;
  let address: string;
  let holdsSubscriptions: boolean;
  /** The replies to subscriptions that are held back, and sent when they are called. */
  let held: (() => void)[];
  /** The connections to the first server that do not subscribe. */
  let commands: Set<Socket>;

  beforeEach(async () => {
    next = await RedisServer.start('--bind', '127.0.0.1', '127.0.0.2');
    [address, holdsSubscriptions, held, commands] = ['127.0.0.3', false, [], new Set()];
    // On another address, this port leads to the first server.
    way = createServer((socket) => {
      const to = connect(server.port, '127.0.0.1');
      commands.add(socket);
      to.pipe(socket);
      socket.on('data', (data) => {
        if (/subscribe/i.test(String(data))) {
          commands.delete(socket);
        }
        if (holdsSubscriptions && !commands.has(socket)) {
          held.push(() => to.write(data));
        } else {
          to.write(data);
        }
      });
      socket.on('close', () => to.destroy());
      to.on('close', () => socket.destroy());
      [socket, to].forEach((end) => end.on('error', () => end.destroy()));
    }).listen(next.port, '127.0.0.3');
    await once(way, 'listening');
  });
  afterEach(async () => {
    way.close();
    await next.stop();
  });

  const lookup: LookupFunction = (_host, { all }, callback) =>
    all === true ? callback(null, [{ address, family: 4 }]) : callback(null, address, 4);
  const openThere = (): Promise<LockService> =>
    openLocks(createClient({ socket: { host: 'redis.test', port: next.port, lookup } as never }));

  /** From now on the name leads to the next server, and the commands of the store have come there. */
  async function moveOn(locks: LockService): Promise<void> {
    address = '127.0.0.2';
    commands.forEach((socket) => socket.destroy());
    await locks.withLock('k', () => undefined);
    expect(await next.client.dbsize()).toBeGreaterThan(0);
  }

  test('the subscription follows the commands', async () => {
    const locks = await openThere();
    await until('the subscription', async () => (await locks.operations.health()).hearsTurns === true);
    await moveOn(locks);
    await until('a subscription at the next', async () => (await channelsOf(next)) > 0);
    await stores.pop()?.close();
  });

  test('a subscription that comes to stand at the first afterwards follows them too', async () => {
    holdsSubscriptions = true;
    const locks = await openThere();
    await until('that it subscribes', () => held.length > 0);
    await moveOn(locks);
    holdsSubscriptions = false;
    held.forEach((letGo) => letGo());
    await until('a subscription at the next', async () => (await channelsOf(next)) > 0);
    await stores.pop()?.close();
  });
});

test('a client that finds no server stays in no list of node-redis, which OpenTelemetry has it keep', async () => {
  ClientRegistry.init();
  const store = new RedisLockStore(createClient({ url: 'redis://127.0.0.1:1' }));
  stores.push(store);
  await store.open({ prefix: 'lock', warn: () => undefined });
  await sleep(1_000);
  await stores.pop()?.close();
  // The client that was given is in it.
  expect(registered()).toBeLessThanOrEqual(1);
});

test('a client whose connection is cut while it is closed, and one that only makes others, stay in no such list', async () => {
  ClientRegistry.init();
  const proxy = await TcpProxy.start(server.port);
  const source = createClient({ url: proxy.url });
  const group = createCluster({ rootNodes: [{ url: 'redis://127.0.0.1:1' }] });
  const before = registered();
  await openLocks(source);
  const closing = stores.pop()?.close();
  proxy.cut();
  await closing;
  const store = new RedisLockStore(group);
  await store.open({ prefix: 'lock', warn: () => undefined });
  await store.close();
  await until('that none is left', () => registered() <= before);
  await proxy.stop();
});

test('an address that is refused by each of two protocols says so', async () => {
  const both = [
    { address: '::1', family: 6 },
    { address: '127.0.0.1', family: 4 },
  ];
  const lookup = ((_name, _options, found) => setImmediate(() => found(null, both))) as LookupFunction;
  const warnings: string[] = [];
  await openLocks(createClient({ socket: { host: 'both', port: 1, lookup } }), (message) => warnings.push(message));
  expect(warnings).toEqual([expect.stringMatching(/did not answer: connect E\w+ /)]);
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
