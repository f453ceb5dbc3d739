import { LockConfigurationError } from '../../core/words/errors.js';
import type { Connection } from './connection.js';
import type { CredentialsFunction } from './credentials.js';
import { backOff, HANDSHAKE_MS } from './handshake.js';
import { keepCurrent, ReadCredentials, type CurrentOptions } from './ioredis-credentials.js';
import { isClient, isCluster, type RedisClient, type RedisConnectionOptions } from './redis-source.js';

/**
 * How long a node of a cluster may leave a command without an answer, in milliseconds: ioredis watches those
 * connections itself.
 */
const CLUSTER_SILENCE_MS = 2_000;

/**
 * ioredis itself repeats a command of a cluster. It does so for a short time only: core repeats it while the caller
 * waits, and the last answer of the nodes is known before the time limit of the command.
 */
const CLUSTER_RETRIES = {
  maxRedirections: 4,
  retryDelayOnMoved: 0,
  retryDelayOnFailover: 30,
  retryDelayOnClusterDown: 30,
  retryDelayOnTryAgain: 30,
  // ioredis asks for the new node of a slot only where the connection to a node has ended.
  clusterNodeRetryStrategy: null,
} as const;

/** The options of the connection to a server or to a node that a client's own must not change. */
const OF_EACH_CONNECTION = {
  // ioredis would reconnect once for each reply of a socket, and add a listener each time.
  reconnectOnError: null,
  commandTimeout: undefined,
  // A pipeline is answered as a whole: one command that a moved slot refuses would take the others along.
  enableAutoPipelining: false,
  // ioredis keeps a timer of this length after it was told to disconnect, which would keep the process.
  disconnectTimeout: 200,
  // The store reads such replies, and ioredis the slots of a cluster.
  stringNumbers: false,
  replyMapping: 'legacy',
} as const;

/** A client of ioredis that is not yet connected, and reads user and password each time that it connects. */
export async function makeIoredis(
  source: RedisClient | RedisConnectionOptions | string,
  credentials: CredentialsFunction | undefined,
  options: Readonly<Record<string, unknown>>,
): Promise<Connection> {
  const asked = credentials && new ReadCredentials(credentials);
  const current = asked ? () => asked.current : () => optionsOf(source);
  const connection = await (isCluster(source)
    ? makeCluster(source as RedisClient, options, current)
    : makeServer(source, options, current));
  if (asked) {
    connection.credentials = asked;
    connection.queuesForEver = true;
  }
  return connection;
}

/** The options of ioredis that have user and password, as they are now; a URL never changes. */
function optionsOf(source: RedisClient | RedisConnectionOptions | string): Readonly<Record<string, unknown>> | undefined {
  const { options } = source as { readonly options?: { readonly redisOptions?: object } };
  return (isClient(source) ? (isCluster(source) ? options?.redisOptions : options) : Object(source)) as Readonly<Record<string, unknown>>;
}

async function makeServer(
  source: RedisClient | RedisConnectionOptions | string,
  options: Readonly<Record<string, unknown>>,
  current: CurrentOptions,
): Promise<Connection> {
  const own = {
    ...OF_EACH_CONNECTION,
    lazyConnect: true,
    retryStrategy: backOff,
    // The answer to INFO comes after the answer to SELECT: without INFO, clients are ready before a database is
    // refused, and lock in another database.
    enableReadyCheck: true,
    // Without it, a sentinel that is stopped would keep ioredis from asking the next one.
    sentinelCommandTimeout: HANDSHAKE_MS,
    ...options,
  };
  const connection = isClient(source) ? duplicateOf(source)(own) : await newClient(source, own);
  keepCurrent(connection.options, current);
  return connection;
}

async function newClient(source: RedisConnectionOptions | string, own: object): Promise<Connection> {
  const Redis = await loadClient();
  return typeof source === 'string' ? new Redis(source, own) : new Redis({ ...source, ...own });
}

async function makeCluster(source: RedisClient, options: Readonly<Record<string, unknown>>, current: CurrentOptions): Promise<Connection> {
  const cluster = duplicateOf(source)([], {
    lazyConnect: true,
    // A ready check needs one more right, and a missing right would not be reported. The nodes answer that a cluster is
    // down.
    enableReadyCheck: false,
    enableOfflineQueue: true,
    clusterRetryStrategy: backOff,
    enableAutoPipelining: false,
    ...CLUSTER_RETRIES,
    redisOptions: keepCurrent({ ...optionsOf(source), ...OF_EACH_CONNECTION, ...options, socketTimeout: CLUSTER_SILENCE_MS }, current),
  });
  cluster.on('+node', (node: Connection) => keepCurrent(node.options, current));
  return cluster;
}

function duplicateOf(source: RedisClient): (...args: readonly unknown[]) => Connection {
  return source.duplicate.bind(source) as (...args: readonly unknown[]) => Connection;
}

type ClientConstructor = new (...args: readonly unknown[]) => Connection;

/** ioredis is loaded only where the store has to make a client: applications without Redis need not install it. */
async function loadClient(): Promise<ClientConstructor> {
  try {
    const { Redis } = (await import('ioredis')) as unknown as { Redis: ClientConstructor };
    return Redis;
  } catch (cause) {
    throw new LockConfigurationError(
      'RedisLockStore needs ioredis where it is given no client. Install it, npm install ioredis, or pass a client of node-redis.',
      '',
      { cause },
    );
  }
}
