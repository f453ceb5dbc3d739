import { Cluster, Redis } from 'ioredis';
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis-5';
import { Cluster as ValkeyCluster, Redis as Valkey } from 'iovalkey';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient, createCluster } from 'redis';
import { createClient as createClient6, createCluster as createCluster6 } from 'redis-6';
import { isLockError, type LockStoreError } from '../../lib/core/words/errors';
import type { LockService } from '../../lib/nest/lock.service';
import type { RedisSource } from '../../lib/redis/connection/redis-source';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { readPage, tableBelow } from '../readme/pages';
import { makeLocks } from '../support/make-locks';
import { RedisCluster } from '../support/redis-cluster';
import { RedisServer } from '../support/redis-server';
import { sideBySide } from '../support/side-by-side';
import { TcpProxy } from '../support/tcp-proxy';
import { until } from '../support/until';

/** The words of the page for each fault: of calls that do not wait, of calls that do, and of a lock that is held. */
const TABLE = new Map(
  tableBelow(readPage('docs/stores/redis.md'), 'When a connection fails').map(([fault = '', ...cells]) => [fault, cells.join(' | ')]),
);

const FAILED = '`LockStoreError`';

/** A client as an application makes it, and closes it. */
interface Client {
  readonly source: RedisSource;
  close(): unknown;
}

type Destroyed = RedisSource & { readonly isOpen: boolean; destroy(): void };
const ioredis = (client: unknown): Client => {
  const known = client as RedisSource & { disconnect(): void; on(event: 'error', listener: () => void): unknown };
  known.on('error', () => undefined);
  return { source: known, close: () => known.disconnect() };
};
const nodeRedis = async (client: unknown): Promise<Client> => {
  const known = client as Destroyed & { connect(): Promise<unknown>; on(event: 'error', listener: () => void): unknown };
  known.on('error', () => undefined);
  await known.connect();
  return { source: known, close: () => known.isOpen && known.destroy() };
};

const SINGLE: Readonly<Record<string, (port: number) => Client | Promise<Client>>> = {
  'ioredis 6': (port) => ioredis(new Redis(port, '127.0.0.1')),
  'ioredis 5': (port) => ioredis(new Redis5(port, '127.0.0.1')),
  iovalkey: (port) => ioredis(new Valkey(port, '127.0.0.1')),
  'node-redis 5': (port) => nodeRedis(createClient({ url: `redis://127.0.0.1:${port}` })),
  'node-redis 6': (port) => nodeRedis(createClient6({ url: `redis://127.0.0.1:${port}` })),
};

type Nodes = readonly { host: string; port: number }[];
const roots = (nodes: Nodes): { rootNodes: { socket: { host: string; port: number } }[] } => ({
  rootNodes: nodes.map((socket) => ({ socket })),
});
const CLUSTER: Readonly<Record<string, (nodes: Nodes) => Client | Promise<Client>>> = {
  'ioredis 6': (nodes) => ioredis(new Cluster([...nodes])),
  'ioredis 5': (nodes) => ioredis(new Cluster5([...nodes])),
  iovalkey: (nodes) => ioredis(new ValkeyCluster([...nodes])),
  'node-redis 5': (nodes) => nodeRedis(createCluster(roots(nodes))),
  'node-redis 6': (nodes) => nodeRedis(createCluster6(roots(nodes))),
};

interface Scene {
  readonly server: RedisServer;
  readonly proxy: TcpProxy;
  readonly client: Client;
}
interface Fault {
  /** Called before the calls that do not wait, and before the one that does. */
  begin(scene: Scene): unknown;
  /** Called while a call waits; without it the fault lasts. */
  end?(scene: Scene): unknown;
  /**
   * Whether connections end by the fault: how a call fails then. A command that was sent before its client noticed the
   * end counts as one whose reply is lost.
   */
  readonly cuts?: string;
}

const FAULTS: Readonly<Record<string, Fault>> = {
  'a connection is cut before the reply': {
    begin: ({ proxy }) => {
      proxy.ambush = 'evalsha';
      proxy.onAmbush = () => (proxy.ambush = undefined);
    },
    end: () => undefined,
  },
  'a half-open connection': {
    begin: ({ proxy }) => (proxy.mode = 'blackhole'),
    end: ({ proxy }) => (proxy.mode = 'pass'),
  },
  'connections are refused': {
    cuts: FAILED,
    begin: ({ proxy }) => (proxy.mode = 'refuse'),
    end: ({ proxy }) => (proxy.mode = 'pass'),
  },
  'each reply takes 300 ms': { begin: ({ proxy }) => (proxy.latencyMs = 300) },
  'no message arrives': { begin: ({ proxy }) => (proxy.mode = 'deafen') },
  'the application closes its client': { begin: ({ client }) => client.close() },
  'the server restarts without its data': {
    cuts: FAILED,
    begin: ({ server }) => server.kill(),
    end: ({ server }) => server.start(),
  },
};

/** How a call ends, in the words of the page. */
async function outcomeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return 'granted';
  } catch (error) {
    if (!isLockError(error) || error.code !== 'LOCK_STORE') {
      throw error;
    }
    return (error as LockStoreError).unknown ? `${FAILED}, unknown` : FAILED;
  }
}

const open = async (source: RedisSource): Promise<{ store: RedisLockStore; locks: LockService }> => {
  const store = new RedisLockStore(source);
  await store.open({ prefix: 'lock', warn: () => undefined });
  return { store, locks: makeLocks(store, { ttl: 20_000, wait: 60_000 }) };
};

/** A fault that others make, as one process sees it. */
interface SeenFault {
  begin(): unknown;
  end?(): unknown;
  /** How a call fails once its client has noticed. */
  readonly cuts?: string | undefined;
}

/** The effects of a fault that a process sees; another process has the lock that a call waits for. */
async function seenOf(locks: LockService, other: LockService, keys: readonly string[], fault: SeenFault): Promise<string> {
  const [held, waited, probe, ...free] = keys as [string, string, string, ...string[]];
  const mine = await locks.acquire(held);
  const theirs = await other.acquire(waited);
  await fault.begin();
  if (fault.cuts) {
    const probed = async (): Promise<void> => (await locks.acquire(probe, { wait: 0 })).release();
    await until('that the client has noticed', async () => (await outcomeOf(probed())) === fault.cuts);
  }
  // At the same moment, so that they share a batch where there is one.
  const outcomes = await Promise.all(free.map((key) => outcomeOf(locks.acquire(key, { wait: 0 }))));
  expect(new Set(outcomes).size).toBe(1);
  await fault.begin();
  const waits = outcomeOf(locks.acquire(waited));
  await sleep(500);
  await theirs.release();
  await fault.end?.();
  const granted = await waits;
  // The store is asked, whatever the lease says.
  const found = await locks.operations.inspect(held);
  return [outcomes[0], granted, found?.fence === mine.fence && mine.isHeld() ? 'kept' : 'lost'].join(' | ');
}

const beside = sideBySide({ atOnce: 5 });

test('the page has each fault, and no other', () => {
  expect([...TABLE.keys()]).toEqual([...Object.keys(FAULTS), 'a slot of a Cluster moves', 'a master of a Cluster is gone']);
});

for (const [fault, { begin, end, cuts }] of Object.entries(FAULTS)) {
  for (const [name, make] of Object.entries(SINGLE)) {
    beside(`${fault}: what the page says, with ${name}`, async () => {
      const server = await RedisServer.start();
      const proxy = await TcpProxy.start(server.port);
      const client = await make(proxy.port);
      const [here, there] = await Promise.all([open(client.source), open(server.url)]);
      try {
        await until('that a turn would be heard', async () => (await server.client.pubsub('CHANNELS', '*')).length >= 2);
        const scene = { server, proxy, client };
        const seen = await seenOf(here.locks, there.locks, ['held', 'waited', 'probe', 'a', 'b', 'c'], {
          cuts,
          begin: () => begin(scene),
          ...(end && { end: () => end(scene) }),
        });
        expect(seen).toBe(TABLE.get(fault));
      } finally {
        await Promise.all([here.store.close(), there.store.close()]);
        client.close();
        await proxy.stop();
        await server.stop();
      }
    });
  }
}

describe('on a Cluster', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await RedisCluster.start();
  }, 60_000);
  afterAll(() => cluster?.stop());

  /** Keys whose locks are all on one master, other ones for each client. */
  async function keysOn(master: RedisServer, name: string): Promise<string[]> {
    const keys: string[] = [];
    for (let at = 0; keys.length < 5; at++) {
      const key = `${name} ${at}`;
      if ((await cluster.masterOf(`{${key}}`)) === master) {
        keys.push(key);
      }
    }
    return keys;
  }

  /** Whether a client says that a command was not sent. On a Cluster those of ioredis do not. */
  const knows = (name: string): boolean => name.startsWith('node-redis');

  /** Compares the effects that all clients see of one fault at the same time with the words of the page. */
  async function compareAll(
    written: string,
    master: RedisServer,
    fault: (keys: readonly string[]) => Promise<unknown>,
    cuts?: string,
  ): Promise<void> {
    const nodes = cluster.nodes.map(({ port }) => ({ host: '127.0.0.1', port }));
    const all = await Promise.all(
      Object.entries(CLUSTER).map(async ([name, make]) => {
        const client = await make(nodes);
        const [here, there] = await Promise.all([open(client.source), open(cluster.connect())]);
        return { name, client, here, there, keys: await keysOn(master, name) };
      }),
    );
    let coming = all.length;
    let go = (): void => undefined;
    const begun = new Promise<void>((resolve) => (go = resolve)).then(() => fault(all.flatMap(({ keys }) => keys)));
    const begin = (): Promise<unknown> => {
      if (--coming === 0) {
        go();
      }
      return begun;
    };
    const inWords = (name: string, text: string): string => text.replace(' ¹', knows(name) ? '' : ', unknown');
    try {
      const seen = await Promise.all(
        all.map(async ({ name, here, there, keys }) => [
          name,
          await seenOf(here.locks, there.locks, keys, { cuts: cuts && inWords(name, cuts), begin }),
        ]),
      );
      expect(seen).toEqual(all.map(({ name }) => [name, inWords(name, TABLE.get(written) as string)]));
    } finally {
      await Promise.all(all.flatMap(({ here, there, client }) => [here.store.close(), there.store.close(), client.close()]));
    }
  }

  test('a slot of a Cluster moves: what the page says, with each client', async () => {
    const [from, to] = (await cluster.masters()) as [RedisServer, RedisServer];
    await compareAll('a slot of a Cluster moves', from, async (keys) => {
      for (const key of keys) {
        await cluster.reshard(`{${key}}`, to);
      }
    });
  }, 180_000);

  test('a master of a Cluster is gone: what the page says, with each client', async () => {
    const [, , master] = (await cluster.masters()) as [RedisServer, RedisServer, RedisServer];
    const kill = async (): Promise<void> => {
      await master.replicasOnline(1);
      await master.kill();
    };
    await compareAll('a master of a Cluster is gone', master, kill, `${FAILED} ¹`);
  }, 180_000);
});
