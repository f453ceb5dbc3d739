import { PostgresServer } from '../support/postgres-server';
import { Program } from '../support/program';
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

let program: Program;

afterEach(() => program?.kill());

test.each(Object.entries({ ...REDIS, ...CLUSTER, ...SENTINEL }))(
  'an open store keeps its process where %s reaches no server',
  async (_, client) => {
    program = await Program.start(storeProgram(client(await freePort())));
    await program.expectToStay();
  },
);

test.each(Object.entries(REDIS))('an open store keeps its process where %s loses its server', async (_, client) => {
  const server = await RedisServer.start();
  program = await Program.start(storeProgram(client(Number(new URL(server.url).port))));
  await server.kill();
  await program.expectToStay();
  await server.stop();
});

test.each(Object.entries(CLUSTER))(
  'an open store keeps its process where %s loses all nodes',
  async (_, client) => {
    const cluster = await RedisCluster.start();
    program = await Program.start(storeProgram(client(Number(new URL((await cluster.masters())[0]?.url ?? '').port))));
    await Promise.all(cluster.nodes.map((node) => node.kill()));
    await program.expectToStay();
    await cluster.stop();
  },
  120_000,
);

test('an open store keeps its process where PostgreSQL restarts', async () => {
  const server = await PostgresServer.start();
  program = await Program.start(storeProgram(`new Pool({ connectionString: '${server.url}', idleTimeoutMillis: 1 })`));
  await server.kill();
  await program.expectToStay();
  await server.stop();
});

test('a store of PostgreSQL that is closed while it opens does not begin to listen', async () => {
  const server = await PostgresServer.start();
  program = await Program.start(`
    import { Pool } from 'pg';
    import { PostgresLockStore } from 'nestjs-distributed-lock/postgres';
    const pool = new Pool({ connectionString: '${server.url}' });
    const store = new PostgresLockStore(pool);
    await store.ensureSchema();
    const opening = store.open({ prefix: 'lock', warn: () => undefined });
    await store.close();
    await opening;
    await pool.end();
    console.log('closed');
  `);
  await program.expectToEnd('closed\n');
  await server.stop();
});
