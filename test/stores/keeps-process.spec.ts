import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { PostgresServer } from '../support/postgres-server';
import { RedisCluster } from '../support/redis-cluster';
import { freePort, RedisServer } from '../support/redis-server';

/** Has a store open, and nothing else, until it is told to close it. */
const program = (client: string): string => `
  import { RedisLockStore } from 'nestjs-distributed-lock';
  import { PostgresLockStore } from 'nestjs-distributed-lock/postgres';
  import { Cluster, Redis } from 'ioredis';
  import { Pool } from 'pg';
  import { createClient, createCluster } from 'redis';
  const host = '127.0.0.1';
  const client = ${client};
  client.on?.('error', () => undefined);
  const store = client instanceof Pool ? new PostgresLockStore(client) : new RedisLockStore(client);
  await store.ensureSchema?.();
  await store.open({ prefix: 'lock', warn: () => undefined });
  process.once('SIGTERM', () => void store.close());
  console.log('open');
`;

const REDIS = {
  ioredis: (port: number) => `new Redis(${port}, host, { lazyConnect: true })`,
  'node-redis': (port: number) => `createClient({ socket: { host, port: ${port} } })`,
};
const CLUSTER = {
  'a Cluster of ioredis': (port: number) => `new Cluster([{ host, port: ${port} }], { lazyConnect: true })`,
  'a Cluster of node-redis': (port: number) => `createCluster({ rootNodes: [{ socket: { host, port: ${port} } }] })`,
};
const SENTINEL = { Sentinel: (port: number) => `({ sentinels: [{ host, port: ${port} }], name: 'locks' })` };

let child: ChildProcess;

async function openStore(client: string): Promise<void> {
  const args = ['--import', './test/support/typescript.mjs', '--input-type=module', '--eval', program(client)];
  child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  await Promise.race([once(child.stdout as NonNullable<typeof child.stdout>, 'data'), once(child, 'exit')]);
}

afterEach(() => child?.kill('SIGKILL'));

/** While it has no server, the process goes on; it ends with the store. */
async function keepsItsProcess(): Promise<void> {
  // The first attempts to connect again, and the pauses between them.
  await sleep(2_000);
  expect(child).toMatchObject({ exitCode: null, signalCode: null });
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([0, null]);
}

test.each(Object.entries({ ...REDIS, ...CLUSTER, ...SENTINEL }))(
  'an open store keeps its process where %s reaches no server',
  async (_, client) => {
    await openStore(client(await freePort()));
    await keepsItsProcess();
  },
);

test.each(Object.entries(REDIS))('an open store keeps its process where %s loses its server', async (_, client) => {
  const server = await RedisServer.start();
  await openStore(client(Number(new URL(server.url).port)));
  await server.kill();
  await keepsItsProcess();
  await server.stop();
});

test.each(Object.entries(CLUSTER))(
  'an open store keeps its process where %s loses all nodes',
  async (_, client) => {
    const cluster = await RedisCluster.start();
    await openStore(client(Number(new URL((await cluster.masters())[0]?.url ?? '').port)));
    await Promise.all(cluster.nodes.map((node) => node.kill()));
    await keepsItsProcess();
    await cluster.stop();
  },
  120_000,
);

test('an open store keeps its process where PostgreSQL restarts', async () => {
  const server = await PostgresServer.start();
  await openStore(`new Pool({ connectionString: '${server.url}', idleTimeoutMillis: 1 })`);
  await server.kill();
  await keepsItsProcess();
  await server.stop();
});
