import type { LockStore } from '../../lib/core/lock-store';
import { MemoryLockStore } from '../../lib/memory/memory-lock-store';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { RedisServer } from './redis-server';

/** A kind of store with a place for its locks, from which several stores of one kind can be made. */
export interface StorePlace {
  /** A store on the same locks as the others: another process, as far as the store knows. */
  connect(): Promise<LockStore>;
  stop(): Promise<void>;
}

interface StoreKind {
  /** Whether it keeps the order of those who wait. */
  readonly keepsOrder: boolean;
  start(): Promise<StorePlace>;
}

/** Every store; each suite runs on each of them, and those about order where there is one. */
export const STORES: Readonly<Record<string, StoreKind>> = {
  memory: {
    keepsOrder: true,
    async start() {
      const store = new MemoryLockStore();
      return { connect: async () => store, stop: () => store.close() };
    },
  },
  'polled memory': {
    keepsOrder: false,
    async start() {
      const store = new MemoryLockStore();
      return { connect: async () => withoutTurns(store), stop: () => store.close() };
    },
  },
  redis: {
    keepsOrder: true,
    start: async () => redisPlace(await RedisServer.start(), 0),
  },
  'redis with a replica': {
    keepsOrder: true,
    async start() {
      const server = await RedisServer.start();
      return redisPlace(server, 1, await RedisServer.startReplica(server.port));
    },
  },
};

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
    async stop() {
      await Promise.all(stores.map((store) => store.close()));
      await Promise.all([server, ...replicas].map((each) => each.stop()));
    },
  };
}

/** The same store as one that keeps no order. */
function withoutTurns(store: LockStore): LockStore {
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
