import { AsyncLocalStorage } from 'node:async_hooks';
import { inspect } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { BasicPooledClientSideCache, createCluster, RESP_TYPES } from 'redis';
import { createCluster as createCluster6 } from 'redis-6';
import type { LockService } from '../../lib/nest/lock.service';
import type { RedisSource } from '../../lib/redis/connection/redis-source';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { makeLocks } from '../support/make-locks';
import { newHold } from '../support/new-hold';
import { noWarning } from '../support/no-warning';
import { RedisCluster } from '../support/redis-cluster';
import type { RedisServer } from '../support/redis-server';
import { refusalOf } from '../support/refusal-of';
import { saying } from '../support/saying';
import { TcpProxy } from '../support/tcp-proxy';
import { until } from '../support/until';

let cluster: RedisCluster;
let stores: RedisLockStore[];
let proxies: TcpProxy[];

beforeAll(async () => {
  cluster = await RedisCluster.start();
});
beforeEach(() => {
  stores = [];
  proxies = [];
});
afterEach(async () => {
  await Promise.all(stores.map((store) => store.close()));
  await Promise.all(proxies.map((proxy) => proxy.stop()));
});
afterAll(() => cluster?.stop());

async function openStore(source: RedisSource): Promise<RedisLockStore> {
  const store = new RedisLockStore(source);
  stores.push(store);
  await store.open({ prefix: 'lock', warn: noWarning });
  return store;
}

const openLocks = async (source: RedisSource): Promise<LockService> => makeLocks(await openStore(source), { ttl: 60_000, wait: 60_000 });

const OTHER_TYPES = { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer, [RESP_TYPES.NUMBER]: String } };

/** Options with which a client sends again, keeps back, or answers in other words. */
const UNFIT = {
  RESP: 3,
  commandOptions: OTHER_TYPES,
  maintNotifications: 'enabled',
  commandsQueueMaxLength: 1,
  pingInterval: 20,
  readonly: true,
  socket: { reconnectStrategy: () => 60_000, socketTimeout: 300 },
} as const;
let touches = 0;
class TheirCache extends BasicPooledClientSideCache {
  override onError(): void {
    touches++;
  }
}
const UNFIT_CLUSTER = {
  RESP: 3,
  clientSideCache: new TheirCache({}),
  commandOptions: OTHER_TYPES,
  defaults: UNFIT,
  useReplicas: true,
  maxCommandRedirections: 0,
};

type Client = RedisSource & {
  readonly isOpen: boolean;
  connect(): Promise<unknown>;
  destroy(): unknown;
  on(event: string, listener: () => void): void;
};

const makerOf =
  (create: unknown) =>
  (options: object = {}): Client =>
    (create as (given: object) => Client)({ rootNodes: cluster.nodes.map(({ url }) => ({ url })), ...options });

const masterOfK = (): Promise<RedisServer> => cluster.masterOf('lock:lock:{k}');

/** The ids of the clients of all servers. */
async function connections(): Promise<string[]> {
  const lists = await Promise.all(
    cluster.nodes.map(async ({ client, port }) => String(await client.call('CLIENT', 'LIST')).replaceAll(/^id=/gm, `${port}:`)),
  );
  return lists.flatMap((list) => list.match(/^\d+:\d+/gm) ?? []);
}

describe.each([
  ['5', makerOf(createCluster)],
  ['6', makerOf(createCluster6)],
])('a cluster of version %s', (version, make) => {
  test('with options that would break a guarantee excludes, counts, and keeps its connections', async () => {
    const others = await connections();
    const [locks, other] = [await openLocks(make(UNFIT_CLUSTER)), await openLocks(make(UNFIT_CLUSTER))];
    let inside = 0;
    const calls = Array.from({ length: 40 }, (_each, at) =>
      (at % 2 === 0 ? locks : other).withLock('k', async ({ fence }) => {
        expect(++inside).toBe(1);
        inside--;
        return fence;
      }),
    );
    expect(new Set(await Promise.all(calls)).size).toBe(40);
    const before = await connections();
    await new Promise((resolve) => void setTimeout(resolve, 600));
    await locks.withLock('k', () => undefined);
    const after = await connections();
    expect(before.filter((id) => !after.includes(id))).toEqual([]);
    expect(touches).toBe(0);
    // Of each store one to each of three masters, and one for the subscription; none to replicas.
    expect(after.filter((id) => !others.includes(id)).length).toBeLessThanOrEqual(8);
    const list = String(await (await masterOfK()).client.call('CLIENT', 'LIST', 'TYPE', 'normal'));
    expect(list.split('\n').filter((line) => line.includes('cmd=evalsha') && /\bresp=3\b/.test(line))).toEqual([]);
  });

  test('whose reply is lost sends nothing again: the caller is told that the outcome is unknown', async () => {
    const master = await masterOfK();
    const way = await TcpProxy.start(master.port);
    proxies.push(way);
    const nodeAddressMap = { [`127.0.0.1:${master.port}`]: { host: '127.0.0.1', port: way.port } };
    const store = await openStore(make({ nodeAddressMap }));
    const hold = newHold('k');
    await store.release({ ...hold, ...(await store.acquire(hold)) } as never);
    const next = newHold('k');
    await master.client.call('CONFIG', 'RESETSTAT');
    way.ambush = 'evalsha';
    await expect(store.acquire(next)).rejects.toMatchObject({ unknown: true });
    way.ambush = undefined;
    await until('that it is connected again', () => store.health().then(() => true, () => false)); // prettier-ignore
    expect(await master.client.info('commandstats')).toMatch(/cmdstat_evalsha:calls=1,/);
    // A command that was carried out is found again by the same hold.
    const fence = Number(await master.client.hget('lock:lock:{k}', 'fence'));
    expect(await store.acquire(next)).toMatchObject({ fence });
    await store.release({ ...next, fence });
  });

  test('whose connection is half open fails in time, and serves again', async () => {
    const master = await masterOfK();
    const way = await TcpProxy.start(master.port);
    proxies.push(way);
    const locks = await openLocks(make({ nodeAddressMap: { [`127.0.0.1:${master.port}`]: { host: '127.0.0.1', port: way.port } } }));
    await locks.withLock('k', () => undefined);
    way.mode = 'dropReplies';
    await expect(locks.acquire('k', { ttl: 2_000, wait: 0 })).rejects.toMatchObject({ code: 'LOCK_STORE', unknown: true });
    way.mode = 'pass';
    // No connection that lost a byte goes on: another one was made.
    expect(await locks.withLock('k', { wait: 15_000 }, () => 'served')).toBe('served');
  });

  test('that its owner closes, or never opened, is no loss, and the connections end with the store', async () => {
    const before = await connections();
    const client = make();
    client.on('error', () => undefined);
    const locks = await openLocks(client);
    expect(client.isOpen).toBe(false);
    await client.connect();
    const held = await locks.acquire('k');
    await client.destroy();
    expect(await locks.tryAcquire('k')).toBeNull();
    await held.release();
    expect(await locks.operations.inspect('k')).toBeNull();
    await stores.pop()?.close();
    await until('that its connections are gone', async () => (await connections()).every((id) => before.includes(id)));
  });

  test('finds the others where the only node that it was connected to dies, which is its only root', async () => {
    const master = await masterOfK();
    const [replica] = (await cluster.replicasOf(master)) as [RedisServer];
    const way = await TcpProxy.start(master.port);
    proxies.push(way);
    const there = { host: '127.0.0.1', port: way.port };
    const store = new RedisLockStore(make({ rootNodes: [{ socket: there }], nodeAddressMap: { [`127.0.0.1:${master.port}`]: there } }));
    stores.push(store);
    const locks = makeLocks(store, { ttl: 2_000, wait: 30_000 });
    await locks.withLock('k', () => undefined);
    await replica.client.cluster('FAILOVER');
    await cluster.promoted([replica]);
    way.mode = 'refuse';
    way.cut();
    expect(await locks.withLock('k', () => 'served')).toBe('served');
  });

  test('says what is wrong with the URL of a node, and not the password in it', async () => {
    const url = 'redis://app:hunter2@127.0.0.1:1';
    const error = await refusalOf(() => openLocks(make({ rootNodes: [{ url }], defaults: { socket: { tls: true } } })));
    expect(error).toEqual(saying(/refused the options that the store was given: tls.*Correct them/));
    expect(inspect(error, { depth: 5 })).not.toContain('hunter2');
  });

  test('keeps nothing of the calls that needed a node first', async () => {
    const locks = await openLocks(make());
    const context = new AsyncLocalStorage();
    const requests: WeakRef<object>[] = [];
    const call = (_each: unknown, at: number): Promise<unknown> => {
      const request = {};
      requests.push(new WeakRef(request));
      return context.run(request, () => locks.withLock(`key ${at}`, () => undefined));
    };
    await Promise.all(Array.from({ length: 6 }, call));
    setFlagsFromString('--expose-gc');
    const gc = runInNewContext('gc') as () => void;
    // The last one may be that of a timer.
    await until('that they are forgotten', () => {
      gc();
      return requests.filter((request) => request.deref() !== undefined).length < 2;
    });
  });

  (version === '6' ? test : test.skip)('has its keyPrefix before its keys', async () => {
    const locks = await openLocks(make({ keyPrefix: 'app:' }));
    const master = await masterOfK();
    await locks.withLock('k', async () => expect(await master.client.exists('app:lock:lock:{k}')).toBe(1));
  });
});
