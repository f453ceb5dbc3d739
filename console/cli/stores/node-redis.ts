import type { createClient, createCluster, RedisClientOptions } from 'redis';
import { LockConfigurationError } from '../../../lib/core/words/errors.js';
import type { RedisSource } from '../../../lib/redis/connection/redis-source.js';
import type { TlsFiles } from '../address/tls-files.js';
import { redisOptionsOf } from './redis-options.js';

/** Makes clients of node-redis. They never connect: the store makes its own connections from them. */
export interface NodeRedis {
  readonly createClient: typeof createClient;
  readonly createCluster: typeof createCluster;
}

/** node-redis, where it is installed and ioredis is not. */
export async function onlyNodeRedis(): Promise<NodeRedis | undefined> {
  const ioredis = await import('ioredis').catch(() => undefined);
  return ioredis ? undefined : import('redis').catch(() => undefined);
}

export function serverBy({ createClient }: NodeRedis, url: string, tls: TlsFiles | undefined): RedisSource {
  return createClient(clientOptions(url, tls));
}

/** User, password and TLS are those of the first URL. */
export function clusterBy({ createCluster }: NodeRedis, urls: readonly string[], tls: TlsFiles | undefined): RedisSource {
  const rootNodes = urls.map((url) => clientOptions(url, tls));
  const [{ username, password, socket }] = rootNodes as [RedisClientOptions];
  return createCluster({
    rootNodes,
    defaults: { username, password, socket: { ...socket, host: undefined, port: undefined } } as RedisClientOptions,
  });
}

function clientOptions(url: string, files: TlsFiles | undefined): RedisClientOptions {
  const { host, port, username, password, db, tls, ...others } = redisOptionsOf(url, files);
  const [option] = Object.keys(others);
  if (option !== undefined) {
    throw new LockConfigurationError(`The option ${option} in the URL of Redis is one of ioredis. Install it: npm install ioredis.`);
  }
  return { username, password, database: db, socket: { host, port, ...(tls ? { ...tls, tls: true } : {}) } } as RedisClientOptions;
}
