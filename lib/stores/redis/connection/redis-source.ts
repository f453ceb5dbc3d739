import { LockConfigurationError } from '../../../core/words/errors.js';
import { shown } from '../../../core/words/shown.js';
import type { CredentialsFunction } from './credentials.js';

/**
 * An ioredis client, of version 5 or 6, or an iovalkey client: `Redis` or `Cluster`. Recognised by what it can do, so that clients of
 * another copy of ioredis are taken as well.
 */
export interface RedisClient {
  duplicate(...args: never[]): unknown;
  evalsha(...args: never[]): unknown;
}

/** A client of node-redis, of version 5 or 6, for one server: what `createClient()` makes. Recognised by what it can do. */
export interface NodeRedisClient {
  duplicate(...args: never[]): unknown;
  evalSha(...args: never[]): unknown;
  sendCommand(...args: never[]): unknown;
  readonly isPubSubActive: boolean;
}

/** A client of node-redis, of version 5 or 6, for a cluster: what `createCluster()` makes. Recognised by what it can do. */
export interface NodeRedisCluster {
  duplicate(...args: never[]): unknown;
  evalSha(...args: never[]): unknown;
  nodeClient(...args: never[]): unknown;
  readonly masters: unknown;
}

/** The options of an ioredis client that the store makes itself; every option of ioredis is allowed. */
export interface RedisConnectionOptions {
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly db?: number | undefined;
  readonly keyPrefix?: string | undefined;
  readonly [option: string]: unknown;
}

/** Where a store's connections come from: a client to duplicate, a `redis://` or `rediss://` URL, or options for ioredis. */
export type RedisSource = RedisClient | NodeRedisClient | NodeRedisCluster | string | RedisConnectionOptions;

/** Where a store's connections lead. */
export interface RedisOrigin {
  readonly source: RedisSource;
  /** User and password instead of those of the source, for each connection. */
  readonly credentials?: CredentialsFunction | undefined;
}

/** Options of node-redis for which ioredis has others: it would not read them, and connect to the local machine. */
const OF_NODE_REDIS = ['url', 'socket', 'rootNodes', 'database'];

const URL_OF_REDIS = /^rediss?:\/\//;

export function isClient(source: unknown): source is RedisClient {
  return can(source, 'duplicate', 'evalsha');
}

/** Whether a client is one of node-redis for one server, and not a cluster, a sentinel or a pool. */
export function isNodeRedis(source: unknown): source is NodeRedisClient {
  return can(source, 'duplicate', 'evalSha') && 'isPubSubActive' in (source as object);
}

export function isNodeRedisCluster(source: unknown): source is NodeRedisCluster {
  return can(source, 'duplicate', 'evalSha', 'nodeClient');
}

/** Whether it leads to the nodes of a cluster. */
export function isCluster(source: RedisSource): boolean {
  return isNodeRedisCluster(source) || (isClient(source) && 'isCluster' in source && source.isCluster === true);
}

/** Throws `LockConfigurationError` for what no connection can be made from. */
export function checkSource(source: unknown, store = 'RedisLockStore'): RedisSource {
  if (isClient(source) || isNodeRedis(source) || isNodeRedisCluster(source)) {
    return source;
  }
  if (typeof source === 'string' && URL_OF_REDIS.test(source) && isWellFormed(source)) {
    return source;
  }
  const prototype: unknown = typeof source === 'object' && source !== null ? Object.getPrototypeOf(source) : undefined;
  if ((prototype === Object.prototype || prototype === null) && strangeOption(source as object) === undefined) {
    return source as RedisConnectionOptions;
  }
  const given = describeSource(source);
  throw new LockConfigurationError(
    `${store} was given ${given}. Pass a client of ioredis or iovalkey (Redis or Cluster), one of createClient() or createCluster() of node-redis, a URL such as 'redis://localhost:6379', or ioredis options.`,
  );
}

function strangeOption(options: object): string | undefined {
  return OF_NODE_REDIS.find((option) => option in options);
}

/** Whether it can be taken apart as a URL, and user name and password decoded. */
export function isWellFormed(url: string): boolean {
  try {
    const { username, password } = new URL(url);
    decodeURIComponent(`${username}:${password}`);
    return true;
  } catch {
    return false;
  }
}

/** Whether it has all these methods. */
function can(source: unknown, ...methods: readonly string[]): boolean {
  const client = source as Readonly<Record<string, unknown>> | null | undefined;
  return methods.every((method) => typeof client?.[method] === 'function');
}

/** What a client is that is none to use: by what it can do, since its class may have any name. */
function foreignClient(client: object): string | undefined {
  if (can(client, 'evalSha', 'getMasterNode')) {
    return 'a sentinel client of node-redis (the package redis), which may send a command twice';
  }
  if (can(client, 'evalSha', 'sendCommand')) {
    return 'a pool of node-redis (the package redis), which it cannot use';
  }
  return can(client, 'invokeScript', 'customCommand') ? 'a client of Valkey GLIDE (@valkey/valkey-glide), which it cannot use' : undefined;
}

function describeSource(source: unknown): string {
  if (typeof source === 'string') {
    return URL_OF_REDIS.test(source)
      ? 'a URL that cannot be read: user name and password have to be written with encodeURIComponent()'
      : 'a text that is no redis:// or rediss:// URL';
  }
  if (typeof source !== 'object' || source === null) {
    return shown(source);
  }
  const client = foreignClient(source);
  if (client !== undefined) {
    return client;
  }
  const option = strangeOption(source);
  return option === undefined ? `an object of class ${source.constructor.name}` : `options with '${option}', which ioredis does not know`;
}
