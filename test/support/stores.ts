import { setTimeout as sleep } from 'node:timers/promises';
import type { LockStore, Operator, Tickets } from '../../lib/core/lock-store';
import { MemoryLockStore } from '../../lib/stores/memory/memory-lock-store';
import { PostgresLockStore, type PostgresPool } from '../../lib/stores/postgres/index';
import { QuorumLockStore } from '../../lib/stores/quorum/quorum-lock-store';
import { RedisLockStore } from '../../lib/stores/redis/redis-lock-store';
import { PglitePool } from './pglite-pool';
import { PostgresServer } from './postgres-server';
import { RedisQuorum } from './redis-quorum';
import { RedisServer } from './redis-server';

/** What can happen to the servers of a store. */
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
  /** A store on the same locks as the others: another process, as far as the store knows. */
  connect(): Promise<WholeStore>;
  /** On how many keys callers may wait at the same time, where that is fewer than 5,000: each looks for its turn every 300 ms. */
  readonly manyKeys?: number;
  /** Undefined for a store that lives in this process. */
  readonly servers?: StoreServers;
  stop(): Promise<void>;
}

export interface StoreKind {
  /** Whether it keeps the order of those who wait. */
  readonly keepsOrder: boolean;
  /** Whether it lives in servers, to which something may happen. */
  readonly hasServers: boolean;
  /** Whether the suites that take their time are left to another store, to which it adds nothing that they would show. */
  readonly isBrief?: boolean;
  start(): Promise<StorePlace>;
}

/** Every store; each suite runs on each of them, and those about order where there is one. */
export const STORES: Readonly<Record<string, StoreKind>> = {
  memory: {
    keepsOrder: true,
    hasServers: false,
    async start() {
      const store = new MemoryLockStore();
      return { connect: async () => store, stop: () => store.close() };
    },
  },
  'polled memory': {
    keepsOrder: false,
    hasServers: false,
    async start() {
      const store = new MemoryLockStore();
      return { connect: async () => withoutTurns(store), stop: () => store.close() };
    },
  },
  redis: {
    keepsOrder: true,
    hasServers: true,
    start: async () => redisPlace(await RedisServer.start(), 0),
  },
  'redis with a replica': {
    keepsOrder: true,
    hasServers: true,
    async start() {
      const server = await RedisServer.start();
      return redisPlace(server, 1, await RedisServer.startReplica(server.port));
    },
  },
  quorum: {
    keepsOrder: false,
    hasServers: true,
    start: async () => quorumPlace(await RedisQuorum.start()),
  },
  postgres: {
    keepsOrder: true,
    hasServers: true,
    async start() {
      const server = await PostgresServer.start(MANY_LISTENERS);
      return postgresPlace(server.pool({ max: 20 }), server);
    },
  },
  'postgres on several databases': {
    keepsOrder: true,
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
  pglite: {
    keepsOrder: true,
    hasServers: false,
    isBrief: true,
    async start() {
      const pool = new PglitePool();
      const place = postgresPlace(pool);
      return { ...place, stop: () => place.stop().then(() => pool.end()) };
    },
  },
};

/** Each store has a connection of its own for each database, until the end of the suite. */
const MANY_LISTENERS = 'max_connections=1000';

function postgresPlace(pools: PostgresPool | PostgresPool[], server?: PostgresServer): StorePlace {
  const stores: PostgresLockStore[] = [];
  return {
    async connect() {
      const store = new PostgresLockStore(pools);
      await store.ensureSchema();
      // The servers of the tests do without fsync.
      await store.open({ prefix: 'lock', warn: (message) => message.includes('fsync is off') || failOnWarning(message) });
      stores.push(store);
      return store;
    },
    manyKeys: 300,
    ...(server && { servers: postgresServers(server) }),
    async stop() {
      await Promise.all(stores.map((store) => store.close()));
      await server?.stop();
    },
  };
}

function postgresServers(server: PostgresServer): StoreServers {
  return {
    keepLocks: true,
    async cut() {
      await server.terminateBackends();
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

function quorumPlace(servers: RedisQuorum): StorePlace {
  const stores: QuorumLockStore[] = [];
  return {
    async connect() {
      const store = new QuorumLockStore(servers.urls);
      await store.open({ prefix: 'lock', warn: (message) => message.includes('restarted') || failOnWarning(message) });
      stores.push(store);
      return store;
    },
    servers: {
      ...redisServers(servers.servers),
      // As many as may be away.
      keepLocks: true,
      restart: (ms) => redisServers(servers.servers.slice(0, 2)).restart(ms),
    },
    async stop() {
      await Promise.all(stores.map((store) => store.close()));
      await servers.stop();
    },
  };
}

function redisPlace(server: RedisServer, minReplicas: number, ...replicas: RedisServer[]): StorePlace {
  const stores: RedisLockStore[] = [];
  return {
    async connect() {
      await server.replicasOnline(replicas.length);
      const store = new RedisLockStore(server.url, { minReplicas });
      await store.open({ prefix: 'lock', warn: failOnWarning });
      stores.push(store);
      return store;
    },
    servers: redisServers([server, ...replicas]),
    async stop() {
      await Promise.all(stores.map((store) => store.close()));
      await Promise.all([server, ...replicas].map((each) => each.stop()));
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

/** The same store as one that keeps no order. */
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
