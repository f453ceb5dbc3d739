import { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis-5';
import { Redis as Valkey } from 'iovalkey';
import { createClient } from 'redis';
import { setTimeout as sleep } from 'node:timers/promises';
import { LockConfigurationError, LockStoreError, type LockError } from '../../lib/core/words/errors';
import { ConnectionFailures } from '../../lib/redis/connection/connection-failures';
import { makeConnection } from '../../lib/redis/connection/redis-client';
import type { Connection } from '../../lib/redis/connection/connection';
import type { RedisSource } from '../../lib/redis/connection/redis-source';
import { RedisKeys } from '../../lib/redis/scripts/redis-keys';
import { warnOfRefusal } from '../../lib/redis/wakeups';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { makeLocks } from '../support/make-locks';
import { closing, opened } from '../support/opened';
import { RedisServer } from '../support/redis-server';
import { until } from '../support/until';
import { EventEmitter } from 'node:events';

let server: RedisServer;
let warnings: string[];

beforeAll(async () => {
  server = await RedisServer.start('--databases', '4', '--busy-reply-threshold', '200');
});
beforeEach(() => {
  warnings = [];
});
afterEach(async () => {
  await server.client.flushall();
});
afterAll(() => server.stop());

async function open(source: RedisSource): Promise<RedisLockStore> {
  return opened(new RedisLockStore(source), (message) => warnings.push(message));
}

const user = async (...rules: string[]): Promise<unknown> => server.client.acl('SETUSER', 'locker', ...rules);
const ALL = ['reset', 'on', '>secret', '~*', '&*', '+@all'];

describe('a client that does not wait for the answer to SELECT never locks in another database', () => {
  const options = { host: '127.0.0.1', lazyConnect: true, enableReadyCheck: false, disableClientInfo: true } as const;
  const clients: readonly [string, (more: object) => RedisSource][] = [
    ['ioredis 6', (more) => new Redis({ ...options, port: server.port, ...more })],
    ['ioredis 5', (more) => new Redis5({ ...options, port: server.port, ...more })],
    ['iovalkey', (more) => new Valkey({ ...options, port: server.port, ...more })],
  ];

  test.each(clients)('%s: the database does not exist', async (_, make) => {
    await expect(open(make({ db: 9 }))).rejects.toMatchObject({
      detail: expect.stringMatching(/refused to set the connection up: .*DB index.*Correct the database/) as string,
    });
    expect(await server.client.keys('*')).toEqual([]);
  });

  test.each(clients)('%s: the user may not select it, until that is granted', async (_, make) => {
    await user(...ALL);
    const locks = makeLocks(await open(make({ db: 2, username: 'locker', password: 'secret' })));
    await user('-select');
    await server.client.client('KILL', 'USER', 'locker');
    // Until the connection is ready, the refusal is one of a command.
    await until('the refusal', async () => {
      const error = await locks.acquire('k', { wait: 0 }).then(
        async (lock) => lock.release(),
        (failure: unknown) => failure,
      );
      return error instanceof LockConfigurationError && /NOPERM.*grant \+select/.test(error.detail);
    });
    expect(await server.client.keys('*')).toEqual([]);
    await user('+select');
    await until('that it works again', async () => locks.withLock('k', { wait: 0 }, () => true).catch(() => false));
    expect((await server.client.keys('*')).length).toBe(0);
  });
});

test('a connection that was set up after a refusal, before its pause was over, stays', async () => {
  await user(...ALL);
  const locks = makeLocks(await open(new Redis({ port: server.port, lazyConnect: true, username: 'locker', password: 'secret', db: 2 })));
  const ids = async (): Promise<string[]> =>
    (String(await server.client.client('LIST')).match(/^id=\d+ .*cmd=evalsha.*user=locker.*$/gm) ?? []).map(
      (line) => line.split(' ')[0] as string,
    );
  const stays = async (): Promise<boolean> => {
    await user('-select');
    await server.client.client('KILL', 'USER', 'locker');
    await until('the refusal', async () =>
      locks.acquire('k', { wait: 0 }).then(
        async (lock) => lock.release().then(() => false),
        (error: LockError) => error.detail.includes('grant +select'),
      ),
    );
    await user('+select');
    await server.client.client('KILL', 'USER', 'locker');
    await until('that it works again', async () => locks.withLock('k', { wait: 0 }, () => true).catch(() => false));
    const before = await ids();
    await sleep(1_500);
    await locks.withLock('k', () => undefined);
    return before.length === 1 && (await ids()).join() === before.join();
  };
  // Again where the machine stood still for so long that a connection was made anew for that.
  await until('that it stays', stays);
});

test('a connection that is refused is made anew once a second, however often it was lost meanwhile', async () => {
  await user(...ALL);
  await open(new Redis({ port: server.port, lazyConnect: true, username: 'locker', password: 'secret', db: 2 }));
  await user('-select');
  for (let losses = 0; losses < 6; losses++) {
    await server.client.client('KILL', 'USER', 'locker');
    await sleep(150);
  }
  const made = async (): Promise<number> => Number(/total_connections_received:(\d+)/.exec(await server.client.info('stats'))?.[1]);
  const before = await made();
  await sleep(4_000);
  expect((await made()) - before).toBeLessThan(10);
});

test('a socket that has two errors, as with TLS, ends no process', async () => {
  const connection = await makeConnection({ source: server.url }, {});
  await connection.connect();
  const socket = connection.stream as unknown as EventEmitter;
  expect(socket.emit('error', new Error('the first'))).toBe(true);
  expect(socket.emit('error', new Error('the second'))).toBe(true);
  connection.disconnect();
});

test('errors that a client tells after its socket has ended, as without any sentinel, add nothing to that socket', async () => {
  const connection = await makeConnection({ source: server.url }, {});
  await connection.connect();
  const socket = connection.stream as unknown as EventEmitter;
  const tell = (): boolean => (connection as unknown as EventEmitter).emit('error', new Error('All sentinels are unreachable'));
  tell();
  const listeners = socket.listenerCount('error');
  tell();
  expect(socket.listenerCount('error')).toBe(listeners);
  connection.disconnect();
});

test('a server that is busy with a script refuses a database for a while, which is no fault of the options', () => {
  const [connection, failures] = [new EventEmitter(), new ConnectionFailures()];
  failures.watch(connection as unknown as Connection);
  const refuse = (message: string): unknown => {
    connection.emit('error', Object.assign(new Error(message), { name: 'ReplyError' }));
    connection.emit('ready');
    return failures.explain(failures.setupRefusal, 'k');
  };
  const busy = refuse('BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.');
  expect(busy).toBeInstanceOf(LockStoreError);
  expect(busy).toMatchObject({ key: 'k', unknown: false });
  expect(refuse('ERR DB index is out of range')).toBeInstanceOf(LockConfigurationError);
  connection.emit('ready');
  expect(failures.setupRefusal).toBeUndefined();
});

test('a command for messages that is refused for a while is not reported as a missing right', () => {
  const warned: string[] = [];
  const refuse = (message: string): void => {
    const error = Object.assign(new Error(message), { name: 'ReplyError' });
    warnOfRefusal(error, 'Redis refused PUBLISH', new RedisKeys('lock', false), '', (warning) => warned.push(warning));
  };
  refuse('BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.');
  expect(warned).toEqual([]);
  refuse("NOPERM User guarded has no permissions to run the 'publish' command");
  expect(warned).toEqual([expect.stringMatching(/^Redis refused PUBLISH on .*: NOPERM .* Grant the rights /)]);
});

describe('a subscription that was refused is asked for again', () => {
  const hears = async (store: RedisLockStore): Promise<boolean> => (await store.health()).hearsTurns === true;

  test('where the right is granted, and is warned of once for each time that it was taken', async () => {
    await user(...ALL, '-subscribe');
    const store = await open(`redis://locker:secret@127.0.0.1:${server.port}`);
    await until('the warning', () => warnings.length === 1);
    // A refusal for each of two pings.
    await until('that it is asked for again', async () => (await refusals()) > 1, 20_000);
    expect(warnings).toEqual([expect.stringMatching(/SUBSCRIBE.*NOPERM/)]);
    // A refusal is an answer: the connection stays. Again where the machine stood still, for which it is made anew.
    await until(
      'three refusals on one connection',
      async () => {
        const [before, count] = [await subscriber(), await refusals()];
        await until('two more', async () => (await refusals()) > count + 1, 20_000);
        return before !== undefined && (await subscriber()) === before;
      },
      60_000,
    );
    await user('+subscribe');
    await until('the subscription', () => hears(store), 20_000);
    await user('-subscribe');
    await server.client.client('KILL', 'USER', 'locker');
    await until('the second warning', () => warnings.length === 2);
  }, 120_000);

  const subscriber = async (): Promise<string | undefined> =>
    /^id=\d+(?= .*cmd=subscribe.*user=locker)/m.exec(String(await server.client.client('LIST')))?.[0];
  const refusals = async (): Promise<number> => {
    const log = (await server.client.acl('LOG')) as unknown[][];
    return log.filter((entry) => entry.includes('subscribe')).reduce((sum, [, count]) => sum + Number(count), 0);
  };

  test('where the server was busy with a script, without a warning', async () => {
    const busy = server.client.eval(
      `local function now() local t = redis.call('TIME'); return t[1] * 1000 + t[2] / 1000 end
local ends = now() + 2500
while now() < ends do for i = 1, 1000 do end end`,
      0,
    );
    const store = new RedisLockStore(createClient({ url: server.url }).on('error', () => undefined));
    closing(store);
    const opening = store.open({ prefix: 'lock', warn: (message) => warnings.push(message) });
    await Promise.all([busy, opening]);
    await until('the subscription', () => hears(store), 20_000);
    expect(warnings.filter((message) => message.includes('SUBSCRIBE'))).toEqual([]);
  });
});
