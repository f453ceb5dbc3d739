import { Cluster } from 'ioredis';
import { createClient } from 'redis';
import { createClient as createClient6, createCluster as createCluster6 } from 'redis-6';
import type { RedisSource } from '../../lib/redis/connection/redis-source';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LockStore, Operator, Tickets } from '../../lib/core/seam/lock-store';
import type { StoreOffer } from '../../lib/contract/index';
import { MemoryLockStore } from '../../lib/memory/memory-lock-store';
import { PostgresLockStore, type PostgresPool } from '../../lib/postgres/index';
import { QuorumLockStore } from '../../lib/quorum/quorum-lock-store';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { MySqlLockStore, type MySqlLockStoreOptions, type MySqlPool } from '../../lib/mysql/index';
import { MySqlServer } from './mysql-server';
import { PglitePool } from './pglite-pool';
import { PostgresServer } from './postgres-server';
import { RedisCluster } from './redis-cluster';
import { RedisQuorum } from './redis-quorum';
import { RedisServer } from './redis-server';

/** The events that can happen to the servers of a store. */
export interface StoreServers {
  /** Whether the locks are still there when they were killed and started again. */
  readonly keepLocks: boolean;
  /** Cuts every connection. */
  cut(): Promise<void>;
  /** Stops them where they stand for so long. */
  stall(ms: number): Promise<void>;
  /** Kills them, and starts them again after so long. */
  restart(ms: number): Promise<void>;
}

/** A store with all the capabilities but turns, which some do without. */
export type WholeStore = LockStore & { readonly tickets: Tickets; readonly operator: Operator };

/** A kind of store with a place for its locks, from which several stores of one kind can be made. */
export interface StorePlace {
  /** A store on the same locks as the others: another process, as far as the store knows. It is not open yet. */
  make(): Promise<WholeStore>;
  /** Such a store, open until `stop`. */
  connect(): Promise<WholeStore>;
  /** Is given what stores warn of; throws where nothing should have been. */
  warn(message: string): void;
  /**
   * On how many keys callers may wait at the same time, where that is fewer than 1,000: each looks for its turn every
   * 300 ms.
   */
  readonly manyKeys?: number;
  /** How often callers hand a lock over in the test of lost wake-ups, where that is not 10,000 times. */
  readonly handOvers?: number;
  /** Undefined for a store that lives in this process. */
  readonly servers?: StoreServers;
  stop(): Promise<void>;
}

export interface StoreKind {
  /** The offers of the store beside acquire, renew, release and close. */
  readonly offers: readonly StoreOffer[];
  /** Whether it lives in servers, to which something may happen. */
  readonly hasServers: boolean;
  /**
   * Whether the suites that take their time are left to another store, to which it adds nothing that they would show.
   */
  readonly isBrief?: boolean;
  start(): Promise<StorePlace>;
}

const ALL = [
  'open',
  'turns',
  'tickets',
  'operator',
  'messages',
  'search',
  'forced',
  'health',
  'reservesFences',
  'shared',
  'permits',
] as const;

/** Every store; each suite runs on each of them, and those about order where there is one. */
export const STORES: Readonly<Record<string, StoreKind>> = {
  memory: {
    offers: ['turns', 'tickets', 'operator', 'messages', 'search', 'forced', 'reservesFences', 'shared', 'permits'],
    hasServers: false,
    start: async () => memoryPlace(new MemoryLockStore()),
  },
  'polled memory': {
    offers: ['tickets', 'operator', 'messages', 'search', 'forced', 'reservesFences', 'shared', 'permits'],
    hasServers: false,
    start: async () => memoryPlace(withoutTurns(new MemoryLockStore())),
  },
  redis: {
    offers: ALL,
    hasServers: true,
    start: async () => redisPlace(await RedisServer.start(), 0, ({ url }) => url),
  },
  'redis with a replica': {
    offers: ALL,
    hasServers: true,
    async start() {
      const server = await RedisServer.start();
      return redisPlace(server, 1, ({ url }) => url, await RedisServer.startReplica(server.port));
    },
  },
  'redis by node-redis': {
    offers: ALL,
    hasServers: true,
    start: async () => redisPlace(await RedisServer.start(), 0, ({ url }) => createClient({ url })),
  },
  'redis by node-redis 6': {
    offers: ALL,
    hasServers: true,
    start: async () => redisPlace(await RedisServer.start(), 0, ({ url }) => createClient6({ url })),
  },
  'redis with a replica by node-redis': {
    offers: ALL,
    hasServers: true,
    async start() {
      const server = await RedisServer.start();
      return redisPlace(server, 1, ({ url }) => createClient({ url }), await RedisServer.startReplica(server.port));
    },
  },
  quorum: {
    offers: ['open', 'tickets', 'operator', 'messages', 'search', 'forced', 'health', 'reservesFences'],
    hasServers: true,
    start: async () => quorumPlace(await RedisQuorum.start()),
  },
  postgres: {
    offers: ALL,
    hasServers: true,
    async start() {
      const server = await PostgresServer.start(MANY_LISTENERS);
      return postgresPlace(server.pool({ max: 20 }), server);
    },
  },
  'postgres on several databases': {
    offers: ALL,
    hasServers: true,
    isBrief: true,
    async start() {
      const server = await PostgresServer.start(MANY_LISTENERS);
      const pools = ['one', 'two', 'three'].map(async (database) => {
        await server.query(`CREATE DATABASE ${database}`);
        return server.pool({ max: 20, connectionString: server.url.replace(/postgres$/, database) });
      });
      return postgresPlace(await Promise.all(pools), server);
    },
  },
  mysql: {
    offers: ['open', 'turns', 'tickets', 'operator', 'search', 'health', 'reservesFences'],
    hasServers: true,
    async start() {
      const server = await MySqlServer.start();
      return mysqlPlace(server.pool({ connectionLimit: 20 }), server);
    },
  },
  'mysql that polls': {
    offers: ['open', 'turns', 'tickets', 'operator', 'search', 'health', 'reservesFences'],
    hasServers: true,
    isBrief: true,
    async start() {
      const server = await MySqlServer.start();
      return mysqlPlace(server.pool({ connectionLimit: 20 }), server, { poll: true });
    },
  },
  pglite: {
    offers: ALL,
    hasServers: false,
    isBrief: true,
    async start() {
      const pool = await PglitePool.start();
      const place = postgresPlace(pool);
      return { ...place, stop: () => place.stop().then(() => pool.end()) };
    },
  },
};

/**
 * Redis behind other clients, in groups of servers. They play the contract only: the effects of a group are tested in
 * `test/redis`.
 */
export const GROUPS: Readonly<Record<string, StoreKind>> = {
  'redis cluster': clusterKind((nodes) => new Cluster(nodes.map(({ port }) => ({ host: '127.0.0.1', port })))),
  'redis cluster by node-redis 6': clusterKind((nodes) => createCluster6({ rootNodes: nodes.map(({ url }) => ({ url })) }) as never),
};

function clusterKind(clientOf: (nodes: readonly RedisServer[]) => RedisSource): StoreKind {
  return {
    offers: ALL,
    hasServers: true,
    async start() {
      const cluster = await RedisCluster.start();
      const clients: RedisSource[] = [];
      const make = async (): Promise<RedisLockStore> => {
        const client = clientOf(cluster.nodes);
        clients.push(client);
        return new RedisLockStore(client);
      };
      const servers = redisServers(cluster.nodes);
      const restart = async (ms: number): Promise<void> => {
        await servers.restart(ms);
        await cluster.settled();
      };
      const endOf = (client: RedisSource): void => (client instanceof Cluster ? client.disconnect() : undefined);
      return {
        ...storesOf(make, undefined, { stop: async () => clients.forEach(endOf) }, cluster),
        servers: { ...servers, restart },
      };
    },
  };
}

/** Each store has a connection of its own for each database, until the end of the suite. */
const MANY_LISTENERS = 'max_connections=1000';

function postgresPlace(pools: PostgresPool | PostgresPool[], server?: PostgresServer): StorePlace {
  return {
    ...storesOf(
      async () => {
        const store = new PostgresLockStore(pools);
        await store.ensureSchema();
        return store;
      },
      // The servers of the tests do without fsync.
      'fsync is off',
      server,
    ),
    manyKeys: 300,
    handOvers: 2_000,
    ...(server && { servers: durable(server, () => server.terminateBackends()) }),
  };
}

/** A server that keeps its locks on disk. */
function durable(server: PostgresServer | MySqlServer, cut: () => Promise<unknown>): StoreServers {
  return {
    keepLocks: true,
    async cut() {
      await cut();
    },
    async stall(ms) {
      server.pause();
      await sleep(ms);
      server.resume();
    },
    async restart(ms) {
      await server.kill();
      await sleep(ms);
      await server.start();
    },
  };
}

function mysqlPlace(pool: MySqlPool, server: MySqlServer, options: MySqlLockStoreOptions = {}): StorePlace {
  return {
    ...storesOf(
      async () => {
        const store = new MySqlLockStore(pool, options);
        await store.ensureSchema();
        return store;
      },
      // The servers of the tests do without flushes.
      'innodb_flush_log_at_trx_commit',
      server,
    ),
    manyKeys: 300,
    handOvers: 2_000,
    servers: durable(server, () => server.endConnections()),
  };
}

function quorumPlace(servers: RedisQuorum): StorePlace {
  return {
    ...storesOf(async () => new QuorumLockStore(servers.urls), 'restarted', servers),
    servers: {
      ...redisServers(servers.servers),
      // As many as may be away.
      keepLocks: true,
      restart: (ms) => redisServers(servers.servers.slice(0, 2)).restart(ms),
    },
  };
}

function redisPlace(
  server: RedisServer,
  minReplicas: number,
  sourceOf: (server: RedisServer) => RedisSource,
  ...replicas: RedisServer[]
): StorePlace {
  const make = async (): Promise<RedisLockStore> => {
    await server.replicasOnline(replicas.length);
    return new RedisLockStore(sourceOf(server), { minReplicas });
  };
  return {
    ...storesOf(make, undefined, server, ...replicas),
    ...(replicas.length === 0 && { handOvers: 3_000 }),
    servers: redisServers([server, ...replicas]),
  };
}

function memoryPlace(store: WholeStore): StorePlace {
  return { make: async () => store, connect: async () => store, warn: failOnWarning, stop: () => store.close() };
}

/**
 * The warning of a store that was opened while its servers were stopped for a second: it serves as soon as they answer.
 * Where they were stopped one after the other, there was no connection, or a replica had no copy.
 */
const SLOW_TO_ANSWER =
  /(did not answer: |none could be made within |have been in use for |lock timeout|replicas confirmed the |too late).* Locked calls (fail until then|go on with the others)/s;

/** A place of stores in servers, which end with it. */
function storesOf(
  make: () => Promise<WholeStore>,
  expectedWarning: string | undefined,
  ...servers: readonly ({ stop(): Promise<void> } | undefined)[]
): StorePlace {
  const stores: LockStore[] = [];
  const warn = (message: string): void => {
    if (!SLOW_TO_ANSWER.test(message) && (expectedWarning === undefined || !message.includes(expectedWarning))) {
      failOnWarning(message);
    }
  };
  return {
    make,
    async connect() {
      const store = await make();
      stores.push(store);
      await store.open?.({ prefix: 'lock', warn });
      return store;
    },
    warn,
    async stop() {
      await Promise.all(stores.map((store) => store.close()));
      await Promise.all(servers.map((server) => server?.stop()));
    },
  };
}

/** Redis servers that keep nothing on disk. */
export function redisServers(servers: readonly RedisServer[]): StoreServers {
  return {
    keepLocks: false,
    async cut() {
      for (const { client } of servers) {
        await client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
        await client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
      }
    },
    async stall(ms) {
      servers.forEach((server) => server.pause());
      await sleep(ms);
      servers.forEach((server) => server.resume());
    },
    async restart(ms) {
      await Promise.all(servers.map((server) => server.kill()));
      await sleep(ms);
      await Promise.all(servers.map((server) => server.start()));
    },
  };
}

/** The store without its capability to keep an order. */
function withoutTurns(store: WholeStore): WholeStore {
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = name === 'turns' ? undefined : Reflect.get(target, name);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

function failOnWarning(message: string): void {
  throw new Error(`an unexpected warning: ${message}`);
}
