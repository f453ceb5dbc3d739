import { LockConfigurationError } from '../../../lib/core/words/errors.js';
import type { RedisConnectionOptions, RedisSource } from '../../../lib/redis/connection/redis-source.js';
import { RedisLockStore } from '../../../lib/redis/redis-lock-store.js';
import type { Address } from '../address/address.js';
import { clusterFindings } from '../doctor/cluster-findings.js';
import { redisFindings } from '../doctor/redis-findings.js';
import { sentinelFindings } from '../doctor/sentinel-findings.js';
import type { NewStore } from './new-store.js';
import { clusterBy, onlyNodeRedis, serverBy } from './node-redis.js';
import { redisOptionsOf } from './redis-options.js';

/** Nothing is left of a store of Redis that was closed. */
export const end = async (): Promise<void> => undefined;

/** The source of a connection to one server. A URL stays a URL where nothing is added to it. */
export async function sourceOf(url: string, { tls }: Pick<Address, 'tls'>): Promise<RedisSource> {
  const nodeRedis = await onlyNodeRedis();
  if (nodeRedis) {
    return serverBy(nodeRedis, url, tls);
  }
  return tls ? redisOptionsOf(url, tls) : url;
}

export async function newRedisStore(address: Address): Promise<NewStore> {
  const source = await sourceOf(address.urls[0] as string, address);
  return { store: new RedisLockStore(source), findings: (prefix) => redisFindings(source, prefix, 'server'), end };
}

export async function newClusterStore(address: Address): Promise<NewStore> {
  const source = await clusterClient(address);
  return { store: new RedisLockStore(source), findings: (prefix) => clusterFindings(source, prefix), end };
}

export function newSentinelStore(address: Address): NewStore {
  const sentinels = address.urls.map((url) => redisOptionsOf(url, address.tls));
  const source = sentinelSource(address, sentinels);
  return { store: new RedisLockStore(source), findings: (prefix) => sentinelFindings(sentinels, source, prefix), end };
}

/**
 * The sources of connections to all servers with keys: a Cluster and a master are one source each, and each server of a
 * quorum is one.
 */
export async function redisSources(address: Address): Promise<readonly RedisSource[]> {
  const { kind, urls, tls } = address;
  switch (kind) {
    case 'redis-cluster':
      return [await clusterClient(address)];
    case 'redis-sentinel':
      return [
        sentinelSource(
          address,
          urls.map((url) => redisOptionsOf(url, tls)),
        ),
      ];
    default:
      return Promise.all(urls.map((url) => sourceOf(url, address)));
  }
}

function sentinelSource({ master, login }: Address, sentinels: readonly RedisConnectionOptions[]): RedisConnectionOptions {
  const [{ username, password, db, tls } = {}] = sentinels;
  return {
    name: master,
    sentinels: sentinels.map(({ host, port }) => ({ host, port })),
    sentinelUsername: username,
    sentinelPassword: password,
    sentinelTLS: tls,
    username: login.user,
    password: login.password,
    db,
    // The servers are encrypted where the Sentinels are.
    tls,
    enableTLSForSentinelMode: tls !== undefined,
  };
}

/** A client that never connects: the store makes its own connections from it. */
async function clusterClient({ urls, tls }: Address): Promise<RedisSource> {
  const nodeRedis = await onlyNodeRedis();
  if (nodeRedis) {
    return clusterBy(nodeRedis, urls, tls);
  }
  const { Cluster } = await import('ioredis').catch((cause: unknown) => {
    throw new LockConfigurationError('--redis-cluster needs the package ioredis. Install it: npm install ioredis.', '', { cause });
  });
  const nodes = urls.map((url) => redisOptionsOf(url, tls));
  const [{ username, password, tls: ownTls } = {}] = nodes;
  return new Cluster(
    nodes.map(({ host = '', port = 0 }) => ({ host, port })),
    {
      lazyConnect: true,
      redisOptions: { username, password, ...(ownTls ? { tls: ownTls as object } : {}) } as object,
      // A certificate is for a name, and ioredis would replace it by an address.
      ...(ownTls ? { dnsLookup: (address, callback) => callback(null, address) } : {}),
    },
  );
}
