import type { Cluster, Redis } from 'ioredis';
import { RedisLockStore } from '../../lib/redis/redis-lock-store';
import { until } from './until';

/** Stores that answer, each on a client of its own, which ends with the suite. */
export class StoresOnClients {
  readonly #clients: (Redis | Cluster)[] = [];

  async open(client: Redis | Cluster): Promise<RedisLockStore> {
    this.#clients.push(client);
    const store = new RedisLockStore(client);
    await store.open({ prefix: 'lock', warn: () => undefined });
    await until('that the store answers', () =>
      store.health().then(
        () => true,
        () => false,
      ),
    );
    return store;
  }

  end(): void {
    this.#clients.forEach((client) => client.disconnect());
  }
}
