import { Cluster, Redis } from 'ioredis';
import { RedisLockStore } from 'nestjs-distributed-lock';
import type { LockStore } from '../../lib/core/lock-store.js';
import type { WorkerSource } from './worker-options.js';

/** The store of a worker, and what ends the client that was made for it. */
export function storeOf(source: WorkerSource): { readonly store: LockStore; readonly end: () => Promise<void> } {
  if (source.kind === 'single') {
    return { store: new RedisLockStore(source.url), end: async () => undefined };
  }
  const { kind, minReplicas, ports, natMap } = source;
  const nodes = ports.map((port) => ({ host: '127.0.0.1', port }));
  const client = kind === 'cluster' ? new Cluster(nodes, { natMap }) : new Redis({ sentinels: nodes, name: 'locks', natMap });
  client.on('error', () => undefined);
  return { store: new RedisLockStore(client, { minReplicas }), end: async () => client.disconnect() };
}
