import { describePostgres } from './database/describe-postgres.js';
import { StartUpError } from './start-up.error.js';
import { readMySqlUrl, readPostgresUrl, readRedisUrl } from './url-variable.js';

/** The package that connects to Redis. */
type RedisClientName = 'ioredis' | 'node-redis';

/** Where locks live. */
export type LockPlace =
  | { readonly store: 'memory' }
  | { readonly store: 'redis'; readonly url: string; readonly client?: RedisClientName }
  | { readonly store: 'quorum'; readonly urls: readonly string[]; readonly client?: RedisClientName }
  | { readonly store: 'postgres'; readonly url: string }
  | { readonly store: 'mysql'; readonly url: string };

const PLACES: Readonly<Record<LockPlace['store'], (environment: NodeJS.ProcessEnv) => LockPlace>> = {
  memory: () => ({ store: 'memory' }),
  redis: ({ REDIS_URL, REDIS_CLIENT }) => ({
    store: 'redis',
    url: readRedisUrl('REDIS_URL', REDIS_URL) ?? missing('redis', 'REDIS_URL', 'redis://host:6379'),
    ...readClient(REDIS_CLIENT),
  }),
  quorum: ({ REDIS_URLS, REDIS_CLIENT }) => ({ store: 'quorum', urls: readServers(REDIS_URLS), ...readClient(REDIS_CLIENT) }),
  // The rows of the locks stand in the database of the balances.
  postgres: ({ DATABASE_URL }) => ({
    store: 'postgres',
    url: readPostgresUrl('DATABASE_URL', DATABASE_URL) ?? missing('postgres', 'DATABASE_URL', 'postgres://user:password@host/database'),
  }),
  mysql: ({ MYSQL_URL }) => ({
    store: 'mysql',
    url: readMySqlUrl('MYSQL_URL', MYSQL_URL) ?? missing('mysql', 'MYSQL_URL', 'mysql://user:password@host/database'),
  }),
};

/**
 * The place that `LOCK_STORE` names; unset, Redis where there is a `REDIS_URL`, and else memory. Throws `StartUpError`
 * for a value of no use.
 */
export function readLockPlace(environment: NodeJS.ProcessEnv): LockPlace {
  const store = environment['LOCK_STORE'] || (environment['REDIS_URL'] ? 'redis' : 'memory');
  if (!Object.hasOwn(PLACES, store)) {
    throw new StartUpError(`LOCK_STORE is "${store}". Set it to ${Object.keys(PLACES).join(', ')}, or leave it out.`);
  }
  return PLACES[store as LockPlace['store']](environment);
}

/** For people; without credentials. */
export function describeLockPlace(place: LockPlace): string {
  switch (place.store) {
    case 'memory':
      return 'the memory of this process';
    case 'redis':
      return `Redis at ${hostOf(place.url)}`;
    case 'quorum':
      return `a quorum of ${place.urls.length} Redis servers: ${place.urls.map(hostOf).join(', ')}`;
    case 'postgres':
      return describePostgres(place.url);
    case 'mysql':
      return `MySQL at ${hostOf(place.url)}, database ${new URL(place.url).pathname.slice(1)}`;
  }
}

/** Whether processes that wait have their turns in the order in which they came. */
export function keepsOrder({ store }: LockPlace): boolean {
  return store !== 'quorum';
}

/** Whether the store has semaphores, and readers beside each other. */
export function offersPermits({ store }: LockPlace): boolean {
  return store !== 'quorum' && store !== 'mysql';
}

export function hostOf(url: string): string {
  return new URL(url).host;
}

function readClient(client: string | undefined): { client?: RedisClientName } {
  if (!client) {
    return {};
  }
  if (client !== 'ioredis' && client !== 'node-redis') {
    throw new StartUpError(`REDIS_CLIENT is "${client}". Set it to ioredis or node-redis, or leave it out.`);
  }
  return { client };
}

function readServers(text: string | undefined): readonly string[] {
  const example = 'redis://a:6379,redis://b:6379,redis://c:6379';
  const urls = (text || missing('quorum', 'REDIS_URLS', example)).split(',').map((part) => readRedisUrl('One of REDIS_URLS', part.trim()));
  const servers = urls.filter((url) => url !== undefined);
  if (new Set(servers.map(hostOf)).size < servers.length) {
    throw new StartUpError('REDIS_URLS names a server twice. The servers of a quorum must not fail together: name different ones.');
  }
  if (servers.length < 3 || servers.length % 2 === 0) {
    throw new StartUpError(
      `REDIS_URLS names ${servers.length} ${servers.length === 1 ? 'server' : 'servers'}. A quorum takes an odd number, 3 or more: ${example}.`,
    );
  }
  return servers;
}

function missing(store: LockPlace['store'], variable: string, example: string): never {
  throw new StartUpError(`LOCK_STORE is "${store}", but ${variable} is not set. Set it to ${example}, or LOCK_STORE to another store.`);
}
