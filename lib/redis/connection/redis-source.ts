import { LockConfigurationError } from '../../core/words/errors.js';
import { shown } from '../../core/words/shown.js';
import type { CredentialsFunction } from './credentials.js';

/**
 * An ioredis client, of version 5 or 6, or an iovalkey client: `Redis` or `Cluster`. Recognised by its methods, so that
 * clients of another copy of ioredis are taken as well.
 */
export interface RedisClient {
  duplicate(...args: never[]): unknown;
  evalsha(...args: never[]): unknown;
}

/**
 * A client of node-redis, of version 5 or 6, for one server, as `createClient()` makes it. Recognised by its methods.
 */
export interface NodeRedisClient {
  duplicate(...args: never[]): unknown;
  evalSha(...args: never[]): unknown;
  sendCommand(...args: never[]): unknown;
  readonly isPubSubActive: boolean;
}

/**
 * A client of node-redis, of version 5 or 6, for a cluster, as `createCluster()` makes it. Recognised by its methods.
 */
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

/**
 * The origin of a store's connections: a client to duplicate, a `redis://` or `rediss://` URL, or options for ioredis.
 */
export type RedisSource = RedisClient | NodeRedisClient | NodeRedisCluster | string | RedisConnectionOptions;

/** Where a store's connections lead. */
export interface RedisOrigin {
  readonly source: RedisSource;
  /** User and password for each connection, in place of the credentials of the source. */
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

/** Throws `LockConfigurationError` for a source from which no connection can be made. */
export function checkSource(source: unknown, store = 'RedisLockStore'): RedisSource {
  const [given, cure = PASS] = (typeof source === 'string' ? wrongText(source) : wrongThing(source)) ?? [];
  if (given !== undefined) {
    throw new LockConfigurationError(`${store} was given ${given}. ${cure}`);
  }
  return source as RedisSource;
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

/** The fault of a source, and which source to pass instead; any other source where that is not given. */
type Wrong = readonly [given: string, cure?: string | undefined];

const PASS =
  "Pass a client of ioredis or iovalkey (Redis or Cluster), one of createClient() or createCluster() of node-redis, a URL such as 'redis://localhost:6379', or ioredis options.";
const PASS_CLIENT = 'Pass the client itself.';

/** The things that are no source, by their methods, since their classes may have any name. The first row counts. */
const NO_SOURCES: readonly (readonly [methods: readonly string[], ...Wrong])[] = [
  [['evalSha', 'getMasterNode'], 'a sentinel client of node-redis (the package redis), which may send a command twice'],
  [['evalSha', 'execute'], 'a pool of node-redis (the package redis)'],
  [['customCommand'], 'a client of Valkey GLIDE (@valkey/valkey-glide)'],
  [['set', 'exec'], 'the answer of multi() or pipeline() of a client', PASS_CLIENT],
  [['evalSha'], 'the answer of legacy() of a client', PASS_CLIENT],
  [['then'], 'a promise', 'Pass what it resolves with.'],
  [['flatMap'], 'a list, and takes one server', 'Pass independent servers to QuorumLockStore, and nodes of a Cluster to new Cluster().'],
];

/** Options of node-redis for which ioredis has others: it would not read them, and connect to the local machine. */
const OF_NODE_REDIS = ['url', 'socket', 'rootNodes', 'database'];

function wrongThing(source: unknown): Wrong | undefined {
  if (isClient(source) || isNodeRedis(source) || isNodeRedisCluster(source)) {
    return undefined;
  }
  const prototype: unknown = typeof source === 'object' && source !== null ? Object.getPrototypeOf(source) : undefined;
  if (prototype === Object.prototype || prototype === null) {
    return wrongOptions(source as RedisConnectionOptions);
  }
  const [, ...known] = NO_SOURCES.find(([methods]) => can(source, ...methods)) ?? [undefined, shown(source)];
  return known;
}

/** The fault of plain options that make no connection; undefined for others. */
function wrongOptions(options: RedisConnectionOptions): Wrong | undefined {
  const strange = OF_NODE_REDIS.find((option) => option in options);
  if (strange !== undefined) {
    const cure = strange === 'url' ? 'Pass the URL itself, a text, or createClient({ url }) of node-redis.' : undefined;
    return [`options with '${strange}', which ioredis does not know`, cure];
  }
  // ioredis takes numbers as texts, too.
  const wrong = ['port', 'db'].find((option) => !/^\d+$/.test(`${(options[option] as string | undefined) ?? 0}`));
  return wrong === undefined ? undefined : [`options whose ${wrong} is ${shown(options[wrong])}`, 'Pass a whole number.'];
}

function wrongText(text: string): Wrong | undefined {
  if (!URL_OF_REDIS.test(text)) {
    return /^([\w+]*unix:|\/)/.test(text)
      ? ['the path of a Unix socket', "Pass { path: '/run/redis.sock' }."]
      : ['a text that is no redis:// or rediss:// URL'];
  }
  return isWellFormed(text)
    ? undefined
    : ['a URL that cannot be read: user name and password have to be written with encodeURIComponent()'];
}
