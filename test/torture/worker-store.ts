import { Cluster, Redis } from 'ioredis';
import { Cluster as ValkeyCluster, Redis as Valkey } from 'iovalkey';
import { RedisLockStore } from 'nestjs-distributed-lock';
import { QuorumLockStore } from 'nestjs-distributed-lock/quorum';
import { MySqlLockStore } from 'nestjs-distributed-lock/mysql';
import { PostgresLockStore } from 'nestjs-distributed-lock/postgres';
import { createPool, type PoolConnection } from 'mysql2/promise';
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'pg';
import { createClient, createCluster } from 'redis';
import { createClient as createClient6, createCluster as createCluster6 } from 'redis-6';
import type { LockStore } from '../../lib/core/seam/lock-store.js';
import type { RedisSource } from '../../lib/redis/connection/redis-source.js';
import type { WorkerSource } from './worker-options.js';

/**
 * How long a connection may take, in milliseconds. Without a limit, a connection that was half open from the start
 * keeps its place in the pool.
 */
const CONNECT_MS = 1_000;
/** How long the end of a pool may take, in milliseconds. */
const ENDING_MS = 3_000;

interface WorkerStore {
  readonly store: LockStore;
  /** Makes what the first processes of a run need; all of them may do so at once. */
  readonly prepare: () => Promise<void>;
  /** Ends the client that was made for the store. */
  readonly end: () => Promise<void>;
}

const nothing = async (): Promise<void> => undefined;

export function storeOf(source: WorkerSource): WorkerStore {
  switch (source.kind) {
    case 'single': {
      const { url } = source;
      return oneOf(0, {
        ioredis: () => new Redis(url),
        iovalkey: () => new Valkey(url),
        'node-redis': () => createClient({ url }),
        'node-redis-6': () => createClient6({ url }),
      });
    }
    case 'quorum': {
      const store = new QuorumLockStore(source.urls, { longestLease: source.longestLeaseMs });
      return { store, prepare: nothing, end: nothing };
    }
    case 'postgres': {
      const pool = new Pool({ connectionString: source.url, connectionTimeoutMillis: CONNECT_MS });
      pool.on('error', () => undefined);
      const store = new PostgresLockStore(pool);
      return { store, prepare: () => store.ensureSchema(), end: () => pool.end() };
    }
    case 'mysql': {
      const pools = source.urls.map((uri) => createPool({ uri, connectTimeout: CONNECT_MS }));
      const store = new MySqlLockStore(pools);
      const connections = new Set<PoolConnection>();
      pools.forEach((pool) => pool.on('connection', (connection) => connections.add(connection)));
      const end = async (): Promise<void> => {
        // They have ended also where one says that the server has closed a connection before.
        const ended = Promise.allSettled(pools.map((pool) => pool.end()));
        // mysql2 waits for the server to close connections that it has ended, and no word of that comes where a
        // connection is half open.
        const isOver = new AbortController();
        await Promise.race([ended, sleep(ENDING_MS, undefined, { signal: isOver.signal }).catch(() => undefined)]);
        isOver.abort();
        connections.forEach((connection) => connection.destroy());
      };
      return { store, prepare: () => store.ensureSchema(), end };
    }
    case 'cluster': {
      const { minReplicas, ports, natMap } = source;
      const nodes = ports.map((port) => ({ host: '127.0.0.1', port }));
      const options = { rootNodes: nodes.map((socket) => ({ socket })), nodeAddressMap: natMap };
      return oneOf(minReplicas, {
        ioredis: () => new Cluster(nodes, { natMap }),
        iovalkey: () => new ValkeyCluster(nodes, { natMap }),
        'node-redis': () => createCluster(options),
        'node-redis-6': () => createCluster6(options),
      });
    }
    case 'sentinel': {
      const { minReplicas, ports, natMap } = source;
      const sentinels = ports.map((port) => ({ host: '127.0.0.1', port }));
      return oneOf(minReplicas, {
        ioredis: () => new Redis({ sentinels, name: 'locks', natMap }),
        iovalkey: () => new Valkey({ sentinels, name: 'locks', natMap }),
      });
    }
  }
}

/**
 * Each process uses one of the clients, in the same queues; all use the client that `TEST_REDIS_CLIENT` names. Clients
 * of node-redis are not connected, and need no end.
 */
function oneOf(minReplicas: number, clients: Readonly<Record<string, () => RedisSource & object>>): WorkerStore {
  const names = Object.keys(clients);
  const { TEST_REDIS_CLIENT: name = names[process.pid % names.length] as string } = process.env;
  const make = clients[name];
  if (!make) {
    throw new Error(`TEST_REDIS_CLIENT is ${name}. Use ${names.join(', ')}.`);
  }
  const client = make();
  const end = async (): Promise<void> => ('isOpen' in client ? undefined : (client as Redis).disconnect());
  (client as Redis).on('error', () => undefined);
  return { store: new RedisLockStore(client, { minReplicas }), prepare: nothing, end };
}
