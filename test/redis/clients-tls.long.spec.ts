import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient, createCluster } from 'redis';
import { createClient as createClient6, createCluster as createCluster6 } from 'redis-6';
import type { RedisSource } from '../../lib/redis/connection/redis-source';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { Certificates } from '../support/certificates';
import { makeLocks } from '../support/make-locks';
import { noWarning } from '../support/no-warning';
import { freePort, RedisServer } from '../support/redis-server';
import { saying } from '../support/saying';
import { until } from '../support/until';

let files: Certificates;
let folder: string;
/** One that is alone, and one that is a cluster by itself: each takes connections without TLS at another port only. */
let servers: RedisServer[];
let ports: [number, number];

beforeAll(async () => {
  files = new Certificates();
  folder = mkdtempSync(join(tmpdir(), 'lock-tls-'));
  ports = [await freePort(), await freePort()];
  const cluster = ['--cluster-enabled', 'yes', '--tls-cluster', 'yes', '--cluster-port', String(await freePort()), '--dir', folder];
  servers = await Promise.all([
    RedisServer.start(...files.ofRedis(ports[0])),
    RedisServer.start(...files.ofRedis(ports[1]), ...cluster, '--cluster-announce-ip', '127.0.0.1'),
  ]);
  const { client } = servers[1] as RedisServer;
  await client.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383);
  await until('that the node serves its slots', async () => (await client.cluster('INFO')).includes('cluster_state:ok'));
});
afterAll(async () => {
  await Promise.all(servers.map((server) => server.stop()));
  rmSync(folder, { recursive: true });
  files.remove();
});

const tls = (): object => ({
  tls: true,
  ca: readFileSync(files.authority),
  cert: readFileSync(files.path('client.pem')),
  key: readFileSync(files.path('client-key.pem')),
});

test.each<[string, (options: object) => RedisSource]>([
  ['createClient() of node-redis 5', (socket) => createClient({ url: `rediss://127.0.0.1:${ports[0]}`, socket } as never) as never],
  ['createClient() of node-redis 6', (socket) => createClient6({ url: `rediss://127.0.0.1:${ports[0]}`, socket } as never) as never],
  ['createCluster() of node-redis 5', (socket) => createCluster(nodes(socket))],
  ['createCluster() of node-redis 6', (socket) => createCluster6(nodes(socket) as never) as never],
])('the certificates of %s are those of the connections', async (_, make) => {
  const store = new RedisLockStore(make(tls()));
  await store.open({ prefix: 'lock', warn: noWarning });
  const locks = makeLocks(store, { wait: 20_000 });
  expect(await locks.withLock('k', () => 'ran')).toBe('ran');
  await until('the subscription', async () => (await locks.operations.health()).hearsTurns === true);
  await store.close();
  const distrusting = new RedisLockStore(make({ ...tls(), ca: undefined }));
  const opening = distrusting.open({ prefix: 'lock', warn: noWarning }).finally(() => distrusting.close());
  await expect(opening).rejects.toThrow(saying(/certificate/));
});

/** The other nodes are reached by what stands in `defaults`. */
function nodes(socket: object): Parameters<typeof createCluster>[0] {
  return { rootNodes: [{ url: `rediss://127.0.0.1:${ports[1]}` }], defaults: { socket } as never };
}
