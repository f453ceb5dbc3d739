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

/** Every store; each suite runs on each of them. */
export const STORES: Readonly<Record<string, { start(): Promise<StorePlace> }>> = {
  memory: {
    async start() {
      const store = new MemoryLockStore();
      return { connect: async () => store, stop: () => store.close() };
    },
  },
  redis: {
    async start() {
      const server = await RedisServer.start();
      const stores: RedisLockStore[] = [];
      return {
        async connect() {
          const store = new RedisLockStore(server.url);
          await store.open({ prefix: 'lock', warn: failOnWarning });
          stores.push(store);
          return store;
        },
        async stop() {
          await Promise.all(stores.map((store) => store.close()));
          await server.stop();
        },
      };
    },
  },
};

function failOnWarning(message: string): void {
  throw new Error(`an unexpected warning: ${message}`);
}
