import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createCluster } from 'redis';
import { createCluster as createCluster6 } from 'redis-6';
import type { LockError } from '../../lib/core/words/errors';
import type { RedisSource } from '../../lib/redis/connection/redis-source';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { makeLocks } from '../support/make-locks';
import { newHold } from '../support/new-hold';
import { isOfSlowness } from '../support/no-warning';
import { freePort, RedisServer } from '../support/redis-server';
import { saying } from '../support/saying';
import { until } from '../support/until';

/** Every key of one is in another slot than those of the others. */
const KEYS = Array.from({ length: 12 }, (_, at) => `key ${at}`);

type Options = Parameters<typeof createCluster>[0];

let folder: string;
let servers: Server[];
let nodes: RedisServer[];
let stores: RedisLockStore[];
let warnings: string[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lock-two-'));
  [servers, nodes, stores, warnings] = [[], [], [], []];
});
afterEach(async () => {
  await Promise.all(stores.map((store) => store.close()));
  await Promise.all(nodes.map((node) => node.stop()));
  servers.forEach((server) => server.close());
  rmSync(folder, { recursive: true });
});

const [FIRST, SECOND] = [
  [0, 8_191],
  [8_192, 16_383],
] as const;

/** Two masters without replicas, the first with half of the slots. */
async function startTwo(...args: string[]): Promise<[RedisServer, RedisServer]> {
  for (const slots of [FIRST, SECOND]) {
    const own = ['--dir', folder, '--cluster-enabled', 'yes', '--cluster-config-file', `${nodes.length}.conf`];
    const settings = [
      '--cluster-port',
      String(await freePort()),
      '--cluster-node-timeout',
      '1500',
      '--cluster-require-full-coverage',
      'no',
    ];
    const node = await RedisServer.start(...own, ...settings, ...args);
    nodes.push(node);
    await node.client.call('CLUSTER', 'SET-CONFIG-EPOCH', nodes.length);
    await node.client.call('CLUSTER', 'ADDSLOTSRANGE', ...slots);
  }
  const [first, second] = nodes as [RedisServer, RedisServer];
  const busPort = /@(\d+)/.exec(String(await second.client.call('CLUSTER', 'NODES')))?.[1] as string;
  await first.client.call('CLUSTER', 'MEET', '127.0.0.1', second.port, busPort);
  await until('that both know both', async () => {
    const views = await Promise.all(nodes.map(({ client }) => client.call('CLUSTER', 'INFO')));
    return views.every((info) => /cluster_state:ok[^]*cluster_slots_ok:16384[^]*cluster_known_nodes:2/.test(String(info)));
  });
  return [first, second];
}

/** The first has no slot any more, and knows no other node. */
async function leave(first: RedisServer, second: RedisServer): Promise<void> {
  const [id] = (await Promise.all(nodes.map(({ client }) => client.call('CLUSTER', 'MYID')))) as string[];
  await first.client.flushall();
  for (const { client } of [first, second]) {
    await client.call('CLUSTER', 'DELSLOTSRANGE', ...FIRST);
  }
  await second.client.call('CLUSTER', 'ADDSLOTSRANGE', ...FIRST);
  await second.client.call('CLUSTER', 'FORGET', id as string);
  await first.client.call('CLUSTER', 'RESET', 'SOFT');
}

async function openStore(source: RedisSource): Promise<RedisLockStore> {
  const store = new RedisLockStore(source);
  stores.push(store);
  await store.open({ prefix: 'lock', warn: (warning) => isOfSlowness(warning) || warnings.push(warning) });
  return store;
}

const rootsOf = (some: readonly RedisServer[]): { url: string }[] => some.map(({ url }) => ({ url }));

/** Takes connections, and is silent. */
async function startSilent(): Promise<{ port: number; sockets: Socket[] }> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => sockets.push(socket.on('error', () => undefined).resume())).listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  return { port: (server.address() as AddressInfo).port, sockets };
}

describe.each<[string, (options: Options) => RedisSource]>([
  ['5', (options) => createCluster(options)],
  ['6', (options) => createCluster6(options as never) as never],
])('a cluster of node-redis %s', (_version, make) => {
  test.each(['hostname', 'ip'])('is reached by names, where its nodes have an endpoint of type %s', async (type) => {
    const names = ['--cluster-announce-hostname', 'localhost', '--cluster-preferred-endpoint-type', type];
    const [first, second] = await startTwo(...names);
    for (const rootNodes of [[{ url: `redis://localhost:${first.port}` }], [{ socket: { port: second.port } }]]) {
      const locks = makeLocks(await openStore(make({ rootNodes })), { wait: 20_000 });
      for (const key of KEYS) {
        expect(await locks.withLock(key, () => 'ran')).toBe('ran');
      }
    }
    expect(warnings).toEqual([]);
  });

  test('goes on where a master left that had the slots of keys', async () => {
    const [first, second] = await startTwo();
    const store = await openStore(make({ rootNodes: rootsOf(nodes) }));
    await Promise.all(KEYS.map((key) => store.operator.inspect(key)));
    await leave(first, second);
    await until('that all slots are found', () =>
      Promise.all(KEYS.map((key) => store.operator.inspect(key))).then(
        () => true,
        () => false,
      ),
    );
  });

  test('grants that replicas confirm go on there too', async () => {
    const [first, second] = await startTwo();
    const store = new RedisLockStore(make({ rootNodes: rootsOf(nodes) }), { minReplicas: 1 });
    stores.push(store);
    await store.open({ prefix: 'lock', warn: () => undefined });
    const refusalOf = (key: string): Promise<string> =>
      store.acquire(newHold(key)).then(
        () => 'granted',
        (error: LockError) => error.detail,
      );
    await Promise.all(KEYS.map(refusalOf));
    await leave(first, second);
    // There is no replica that could confirm.
    await until('that all slots are found', async () =>
      (await Promise.all(KEYS.map(refusalOf))).every((message) => message.includes('replicas')),
    );
  });

  test('hears messages again where the master of its subscription left', async () => {
    const [first, second] = await startTwo();
    const heard = new Set<RedisLockStore>();
    for (let at = 0; at < 6; at++) {
      const store = await openStore(make({ rootNodes: rootsOf(nodes) }));
      store.messages.onMessage(() => heard.add(store));
    }
    const allHear = async (): Promise<boolean> => {
      heard.clear();
      await second.client.publish('lock:wake:all', 'note - text');
      await sleep(300);
      return heard.size === stores.length;
    };
    await until('that all hear', allHear);
    await leave(first, second);
    // A process asks itself every 5 s whether it still hears.
    await until('that all hear again', allHear);
  }, 120_000);

  test('starts while one of two masters is away', async () => {
    const [, second] = await startTwo();
    await second.kill();
    await Promise.all(Array.from({ length: 10 }, () => openStore(make({ rootNodes: rootsOf(nodes) }))));
    // The key by which rights are tried may be one of its own.
    expect(warnings.filter((warning) => !warning.includes('start-up check'))).toEqual([]);
  });

  test('of which no node can be reached says so, and has no health', async () => {
    const store = await openStore(make({ rootNodes: [{ url: `redis://127.0.0.1:${await freePort()}` }] }));
    expect(warnings).toEqual([expect.stringMatching(/ECONNREFUSED/)]);
    await expect(store.health()).rejects.toMatchObject({ code: 'LOCK_STORE', unknown: false });
  });

  test('whose credentials come late once, at a root that hangs, says that it hangs, and has no connection once it is closed', async () => {
    const { port, sockets } = await startSilent();
    let late = 1_500;
    const credentials = async (): Promise<object> => {
      await sleep(late);
      late = 0;
      return { password: 'secret' };
    };
    const defaults = { credentialsProvider: { type: 'async-credentials-provider', credentials } };
    const store = new RedisLockStore(make({ rootNodes: [{ socket: { host: '127.0.0.1', port } }], defaults: defaults as never }));
    stores.push(store);
    const opened = store.open({ prefix: 'lock', warn: (warning) => void warnings.push(warning) });
    await opened;
    await until('further attempts', () => sockets.length > 2);
    await expect(store.acquire(newHold('k'))).rejects.toThrow(saying(/was not ready within 1000 ms/));
    await store.close();
    await until('that all are closed', () => sockets.every(({ destroyed, readyState }) => destroyed || readyState !== 'open'));
    const taken = sockets.length;
    await sleep(1_000);
    expect(sockets).toHaveLength(taken);
  });

  test('that is closed while roots are asked asks no more of them', async () => {
    const roots = await Promise.all([startSilent(), startSilent(), startSilent()]);
    const store = new RedisLockStore(make({ rootNodes: roots.map(({ port }) => ({ socket: { host: '127.0.0.1', port } })) }));
    const opened = store.open({ prefix: 'lock', warn: () => undefined }).catch(() => undefined);
    const sockets = (): Socket[] => roots.flatMap((root) => root.sockets);
    await until('that roots are asked', () => sockets().length >= 2);
    await store.close();
    // One may be on its way.
    await sleep(300);
    const taken = sockets().length;
    await until('that all are closed', () => sockets().every(({ destroyed, readyState }) => destroyed || readyState !== 'open'));
    await opened;
    await sleep(1_500);
    expect(sockets()).toHaveLength(taken);
  });

  test('has no timer for each command', async () => {
    await startTwo();
    const locks = makeLocks(await openStore(make({ rootNodes: rootsOf(nodes) })));
    await locks.withLock('k', () => undefined);
    const { timeout } = AbortSignal;
    let timers = 0;
    AbortSignal.timeout = (ms) => {
      timers++;
      return timeout(ms);
    };
    try {
      await locks.withLock('k', () => undefined);
    } finally {
      AbortSignal.timeout = timeout;
    }
    expect(timers).toBe(0);
  });
});
