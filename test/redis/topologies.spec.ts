import { Cluster, Redis } from 'ioredis';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { LockConfigurationError } from '../../lib/core/errors';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { makeLocks } from '../support/make-locks';
import { freePort, RedisServer } from '../support/redis-server';

const folder = mkdtempSync(join(tmpdir(), 'lock-topologies-'));
const servers: RedisServer[] = [];

afterAll(async () => {
  await Promise.all(servers.map((server) => server.stop()));
  rmSync(folder, { recursive: true });
});

async function start(...args: string[]): Promise<RedisServer> {
  const server = await RedisServer.start('--dir', folder, ...args);
  servers.push(server);
  return server;
}

test('a Sentinel client is accepted', async () => {
  const master = await start();
  const file = join(folder, 'sentinel.conf');
  const port = await freePort();
  writeFileSync(file, `port ${port}\nsentinel monitor locks 127.0.0.1 ${master.port} 1\n`);
  const sentinel = execFile('redis-server', [file, '--sentinel']);
  const client = new Redis({ sentinels: [{ host: '127.0.0.1', port }], name: 'locks' });
  const store = new RedisLockStore(client);
  await store.open({ prefix: 'lock', warn: (message) => expect(message).toBe('') });
  const locks = makeLocks(store);
  await locks.withLock('k', async () => expect(await master.client.exists('lock:lock:{k}')).toBe(1));
  await store.close();
  client.disconnect();
  sentinel.kill('SIGKILL');
});

test('a wrong password of a Cluster fails at start, naming what to correct and not the password', async () => {
  const node = await start('--cluster-enabled', 'yes', '--cluster-config-file', 'locked.conf');
  await node.client.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
  await node.client.config('SET', 'requirepass', 'right');
  const client = new Cluster([{ host: '127.0.0.1', port: node.port }], { redisOptions: { password: 'wrong-password' }, lazyConnect: true });
  const store = new RedisLockStore(client);
  const error = (await store.open({ prefix: 'lock', warn: () => undefined }).catch((failure: unknown) => failure)) as Error;
  await store.close();
  client.disconnect();
  expect(error).toBeInstanceOf(LockConfigurationError);
  expect(error.message).toMatch(/WRONGPASS.*Correct the user name and password/);
  expect(inspect(error, { depth: 10, showHidden: true })).not.toContain('wrong-password');
});
