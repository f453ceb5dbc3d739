import { Cluster, type ClusterOptions, type Redis } from 'ioredis';
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis-5';
import { Cluster as ValkeyCluster, Redis as Valkey } from 'iovalkey';
import { createClient, createCluster } from 'redis';
import { createClient as createClient6, createCluster as createCluster6 } from 'redis-6';
import type { RedisSource } from '../../lib/redis/connection/redis-source';

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** In the words of ioredis: other clients are given the same in theirs. */
export type ClusterClientOptions = Pick<ClusterOptions, 'lazyConnect' | 'slotsRefreshTimeout' | 'maxRedirections'> & {
  natMap?: Readonly<Record<string, Address>>;
  redisOptions?: { username?: string; password?: string };
};

/** A client for a cluster, as an application would give it to a store. */
export interface ClusterClient {
  readonly source: RedisSource;
  /** Whether it is in the state in which it was given to the store. */
  isUntouched(): boolean;
  close(): void;
}

interface ClientPackage {
  server(url: string): RedisSource;
  cluster(nodes: readonly Address[], options: ClusterClientOptions): ClusterClient;
}

const ioredis = (server: (url: string) => RedisSource, Group: typeof Cluster): ClientPackage => ({
  server,
  cluster(nodes, options) {
    const client = new Group([...nodes], options);
    // A failure shows in the commands.
    client.on('error', () => undefined);
    return { source: client, isUntouched: () => client.status !== 'end', close: () => client.disconnect() };
  },
});

/** A client that never connects: the store duplicates it. */
const lazy =
  (Client: unknown) =>
  (url: string): RedisSource =>
    new (Client as typeof Redis)(url, { lazyConnect: true });

const nodeRedis = (create: typeof createClient, createGroup: typeof createCluster): ClientPackage => ({
  server: (url) => create({ url }),
  cluster(nodes, { natMap, redisOptions }) {
    const client = createGroup({
      rootNodes: nodes.map(({ host, port }) => ({ socket: { host, port } })),
      defaults: { ...redisOptions },
      ...(natMap && { nodeAddressMap: natMap }),
    });
    return { source: client, isUntouched: () => !client.isOpen, close: () => undefined };
  },
});

/** The client packages that `TEST_REDIS_CLIENT` names; without it, ioredis. */
const PACKAGES: Readonly<Record<string, ClientPackage>> = {
  ioredis: ioredis((url) => url, Cluster),
  'ioredis-5': ioredis(lazy(Redis5), Cluster5 as never),
  iovalkey: ioredis(lazy(Valkey), ValkeyCluster as never),
  'node-redis': nodeRedis(createClient, createCluster),
  'node-redis-6': nodeRedis(createClient6 as never, createCluster6 as never),
};

/** The client package that the suite is run with. */
const CLIENT_PACKAGE = process.env['TEST_REDIS_CLIENT'] ?? 'ioredis';

function chosen(): ClientPackage {
  const found = PACKAGES[CLIENT_PACKAGE];
  if (!found) {
    throw new Error(`TEST_REDIS_CLIENT is ${CLIENT_PACKAGE}. Use ${Object.keys(PACKAGES).join(', ')}.`);
  }
  return found;
}

/** The packages of clients. */
export const CLIENT_PACKAGES: readonly string[] = Object.keys(PACKAGES);

/** Where a store is to connect, with the client of a package. */
export function sourceWith(name: string, url: string): RedisSource {
  return (PACKAGES[name] as ClientPackage).server(url);
}

/** Where a store is to connect. */
export function sourceOf(url: string): RedisSource {
  return chosen().server(url);
}

/** A client for a cluster. With a `natMap`, it meets the nodes only at the addresses that stand there. */
export function clusterClient(nodes: readonly { readonly port: number }[], options: ClusterClientOptions = {}): ClusterClient {
  const { natMap } = options;
  return chosen().cluster(natMap ? Object.values(natMap) : nodes.map(({ port }) => ({ host: '127.0.0.1', port })), options);
}
