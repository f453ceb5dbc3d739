import { Cluster, Redis } from 'ioredis';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect, promisify } from 'node:util';
import { LockConfigurationError } from '../../lib/core/errors';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { makeLocks } from '../support/make-locks';
import { freePort, RedisServer } from '../support/redis-server';

const run = promisify(execFile);
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

test('a Cluster client is accepted: every script stays in one slot, whatever the key is called', async () => {
  const nodes = [];
  for (const name of ['a', 'b', 'c']) {
    nodes.push(
      await start(
        '--cluster-enabled',
        'yes',
        '--cluster-config-file',
        `${name}.conf`,
        '--cluster-require-full-coverage',
        'no',
        '--cluster-node-timeout',
        '60000',
      ),
    );
  }
  await run('redis-cli', ['--cluster', 'create', ...nodes.map(({ port }) => `127.0.0.1:${port}`), '--cluster-yes']);
  const cluster = new Cluster(nodes.map(({ port }) => ({ host: '127.0.0.1', port })));
  while (!(await nodes[0]?.client.cluster('INFO'))?.includes('cluster_state:ok')) {
    await sleep(50);
  }
  const store = new RedisLockStore(cluster);
  await store.open({ prefix: 'lock', warn: (message) => expect(message).toBe('') });
  const locks = makeLocks(store);
  const keys = Array.from({ length: 100 }, (_, index) => `key {${index}}`);
  await Promise.all(
    keys.map((key) =>
      locks.withLock(key, { ttl: 900 }, async (lock) => {
        await sleep(500);
        expect(lock.isHeld()).toBe(true);
        await locks.withLock(key, { ticket: lock.ticket }, () => undefined);
      }),
    ),
  );
  const all = await locks.acquire(keys);
  await expect(locks.tryAcquire(keys[7] as string)).resolves.toBeNull();
  expect(await locks.forceRelease(keys[7] as string, { fence: all.fenceOf(keys[7] as string) })).toBe(true);
  await sleep(100);
  expect(all.signal.reason).toMatchObject({ reason: 'forced' });
  await all.release();
  // One shard that does not answer takes no other's locks along.
  const leases = await Promise.all(keys.map((key) => locks.acquire(key, { ttl: 900 })));
  nodes[0]?.pause();
  await sleep(1_300);
  const held = leases.filter((lease) => lease.isHeld()).length;
  nodes[0]?.resume();
  expect(held).toBeGreaterThan(50);
  expect(held).toBeLessThan(80);
  await Promise.all(leases.map((lease) => lease.release()));
  await sleep(1_000);
  const left = (await Promise.all(nodes.map(({ client }) => client.keys('lock:lock:*')))).flat();
  expect(left).toEqual([]);
  await store.close();
  expect(cluster.status).toBe('ready');
  cluster.disconnect();
});

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
