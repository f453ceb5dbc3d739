import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { PostgresServer } from '../support/postgres-server';
import { RedisCluster } from '../support/redis-cluster';
import { freePort, RedisServer } from '../support/redis-server';

/** Has a store open, and nothing else, until it is told to close it. */
const storeProgram = (client: string): string => `
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
let exited: Promise<unknown[]>;
/** Whether it has printed its line. */
let isSaid = false;

/** Its code returns at once each time that it leads; nothing else keeps the process. */
const LEADS_THREE_TIMES = `
  import { LockModule, LockService, MemoryLockStore } from 'nestjs-distributed-lock';
  import { NestFactory } from '@nestjs/core';
  const app = await NestFactory.createApplicationContext(LockModule.forRoot({ store: new MemoryLockStore() }), { logger: false });
  let turns = 0;
  app.get(LockService).lead('feed', async () => {
    if (++turns === 3) {
      console.log('led');
      setTimeout(() => app.close(), 100);
    }
  }, { pause: 300 });
`;

async function start(program: string): Promise<void> {
  const args = ['--import', './test/support/typescript.mjs', '--input-type=module', '--eval', program];
  child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  exited = once(child, 'exit');
  isSaid = false;
  const said = once(child.stdout as NonNullable<typeof child.stdout>, 'data').then(() => (isSaid = true));
  await Promise.race([said, exited]);
}

afterEach(() => child?.kill('SIGKILL'));

/** While it has no server, the process goes on; it ends with the store. */
async function keepsItsProcess(): Promise<void> {
  // The first attempts to connect again, and the pauses between them.
  await sleep(2_000);
  expect(child).toMatchObject({ exitCode: null, signalCode: null });
  child.kill('SIGTERM');
  expect(await exited).toEqual([0, null]);
}

test.each(Object.entries({ ...REDIS, ...CLUSTER, ...SENTINEL }))(
  'an open store keeps its process where %s reaches no server',
  async (_, client) => {
    await start(storeProgram(client(await freePort())));
    await keepsItsProcess();
  },
);

test.each(Object.entries(REDIS))('an open store keeps its process where %s loses its server', async (_, client) => {
  const server = await RedisServer.start();
  await start(storeProgram(client(Number(new URL(server.url).port))));
  await server.kill();
  await keepsItsProcess();
  await server.stop();
});

test.each(Object.entries(CLUSTER))(
  'an open store keeps its process where %s loses all nodes',
  async (_, client) => {
    const cluster = await RedisCluster.start();
    await start(storeProgram(client(Number(new URL((await cluster.masters())[0]?.url ?? '').port))));
    await Promise.all(cluster.nodes.map((node) => node.kill()));
    await keepsItsProcess();
    await cluster.stop();
  },
  120_000,
);

test('an open store keeps its process where PostgreSQL restarts', async () => {
  const server = await PostgresServer.start();
  await start(storeProgram(`new Pool({ connectionString: '${server.url}', idleTimeoutMillis: 1 })`));
  await server.kill();
  await keepsItsProcess();
  await server.stop();
});

test('a candidate keeps its process in its pauses', async () => {
  await start(LEADS_THREE_TIMES);
  expect(await exited).toEqual([0, null]);
  expect(isSaid).toBe(true);
});
