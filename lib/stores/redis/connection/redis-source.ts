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
  const isPlain = prototype === Object.prototype || prototype === null;
  if (isPlain && wrongOptions(source as object) === undefined) {
    return source as RedisConnectionOptions;
  }
  const [given, cure = PASS] =
    typeof source === 'string' ? wrongText(source) : isPlain ? (wrongOptions(source as object) as Wrong) : wrongThing(source);
  throw new LockConfigurationError(`${store} was given ${given}. ${cure}`);
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

/** The fault of a source, and what to pass instead; any other source where that is not given. */
type Wrong = readonly [given: string, cure?: string];

const PASS =
  "Pass a client of ioredis or iovalkey (Redis or Cluster), one of createClient() or createCluster() of node-redis, a URL such as 'redis://localhost:6379', or ioredis options.";
const PASS_CLIENT = 'Pass the client itself.';

/** Options of node-redis for which ioredis has others, and what takes them: it would not read them, and connect to the local machine. */
const OF_NODE_REDIS: Readonly<Record<string, string>> = {
  url: 'the URL itself, which is a text, or createClient({ url })',
  socket: 'createClient({ socket })',
  rootNodes: 'createCluster({ rootNodes })',
  database: 'createClient({ database })',
};

/** The fault of plain options that make no connection; undefined for others. */
function wrongOptions(options: object): Wrong | undefined {
  const strange = Object.keys(OF_NODE_REDIS).find((option) => option in options);
  if (strange !== undefined) {
    return [
      `options with '${strange}', which ioredis does not know`,
      `Pass ${OF_NODE_REDIS[strange]} of node-redis, or options of ioredis.`,
    ];
  }
  const { host, port, db } = options as { readonly [option: string]: unknown };
  const [option, value] = Object.entries({ port, db }).find(([, number]) => !isWhole(number)) ?? [];
  if (option !== undefined) {
    return [`options whose ${option} is ${shown(value)}`, 'Pass a number, such as { port: 6379, db: 0 }.'];
  }
  return typeof (host ?? '') === 'string' ? undefined : [`options whose host is ${shown(host)}`, 'Pass its name or address.'];
}

/** Whether it is a whole number, which ioredis takes as a text too, or is not given. */
function isWhole(value: unknown): boolean {
  return value === undefined || value === null || /^\d+$/.test(String(value));
}

function wrongText(text: string): Wrong {
  if (/^([\w+]*unix:|\/)/.test(text)) {
    return [
      'the path of a Unix socket as a text',
      "Pass it by name: { path: '/run/redis.sock' }, or createClient({ socket: { path } }) of node-redis.",
    ];
  }
  return URL_OF_REDIS.test(text)
    ? ['a URL that cannot be read: user name and password have to be written with encodeURIComponent()']
    : ['a text that is no redis:// or rediss:// URL'];
}

/** By what a client can do, since its class may have any name. */
function wrongThing(source: unknown): Wrong {
  if (Array.isArray(source)) {
    return [
      'a list, and takes one server',
      'Pass a list of independent servers to QuorumLockStore, and the nodes of a Cluster as new Cluster(nodes) of ioredis.',
    ];
  }
  if (source instanceof Promise) {
    return ['a promise', 'Pass what it resolves with: a client need not be connected.'];
  }
  if (can(source, 'evalSha', 'getMasterNode')) {
    return ['a sentinel client of node-redis (the package redis), which may send a command twice'];
  }
  if (can(source, 'evalSha', 'execute')) {
    return ['a pool of node-redis (the package redis), which it cannot use'];
  }
  if (can(source, 'invokeScript', 'customCommand')) {
    return ['a client of Valkey GLIDE (@valkey/valkey-glide), which it cannot use'];
  }
  if (can(source, 'set', 'exec')) {
    return ['what multi() or pipeline() of a client answers, which sends its commands once', PASS_CLIENT];
  }
  if (can(source, 'evalSha')) {
    return ['what legacy() of a client of node-redis answers, which has callbacks in place of promises', PASS_CLIENT];
  }
  return [shown(source)];
}
