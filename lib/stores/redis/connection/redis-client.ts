import { LockConfigurationError } from '../../../core/words/errors.js';
import type { Connection } from './connection.js';
import { backOff, boundHandshake, HANDSHAKE_MS } from './handshake.js';
import { NodeRedisConnection } from './node-redis/server-connection.js';
import { NodeRedisClusterConnection } from './node-redis/cluster-connection.js';
import { ClusterEndpoints } from './node-redis/cluster-endpoints.js';
import { fromFunction } from './node-redis/credentials.js';
import { endpointOf } from './node-redis/endpoint.js';
import { keepCurrent, ReadCredentials, type CurrentOptions } from './ioredis-credentials.js';
import { optionsError } from './redis-errors.js';
import {
  isClient,
  isCluster,
  isNodeRedis,
  isNodeRedisCluster,
  type RedisClient,
  type RedisConnectionOptions,
  type RedisOrigin,
} from './redis-source.js';

/** After how many milliseconds a connection that ioredis gave up is made again. */
const AGAIN_MS = 500;
/** How long a node of a cluster may leave a command without an answer, in milliseconds: ioredis watches those connections itself. */
const CLUSTER_SILENCE_MS = 2_000;

/**
 * ioredis itself repeats a command of a cluster. It does so for a short time only: core repeats it while the caller waits, and the last
 * answer of the nodes is known before the time limit of the command.
 */
const CLUSTER_RETRIES = {
  maxRedirections: 4,
  retryDelayOnMoved: 0,
  retryDelayOnFailover: 30,
  retryDelayOnClusterDown: 30,
  retryDelayOnTryAgain: 30,
  // Only where the connection to a node has ended does ioredis ask who has its slots now.
  clusterNodeRetryStrategy: null,
} as const;

/** What a client's own options must not change, of the connection to a server or to a node. */
const OF_EACH_CONNECTION = {
  // ioredis would reconnect once for each reply of a socket, and add a listener each time.
  reconnectOnError: null,
  commandTimeout: undefined,
  // A pipeline is answered as a whole: one command that a moved slot refuses would take the others along.
  enableAutoPipelining: false,
  // ioredis keeps a timer of this length after it was told to disconnect, which would keep the process.
  disconnectTimeout: 200,
  // What the store reads, and ioredis of the slots of a cluster.
  stringNumbers: false,
  replyMapping: 'legacy',
} as const;

/** A connection of the store's own, not yet connected, that fails fast and comes back by itself. */
export async function makeConnection(origin: RedisOrigin, options: Readonly<Record<string, unknown>>): Promise<Connection> {
  const connection = await makeClient(origin, options).catch(refuseOptions);
  boundHandshake(connection);
  connection.on('+node', keepAsking);
  outliveSecondErrors(connection);
  return connection;
}

/** ioredis hears the first error of a socket only. With TLS a second one may come, as where a certificate is refused: it would end the process. */
function outliveSecondErrors(connection: Connection): void {
  let heard: Connection['stream'];
  connection.on('error', () => {
    // Without any sentinel ioredis tells errors again and again, and its socket is the last one that it had.
    if (connection.stream !== heard) {
      heard = connection.stream;
      heard?.on?.('error', () => undefined);
    }
  });
}

/**
 * ioredis sends ASKING before a command that a node redirects while a slot moves, and awaits no answer. Where that connection closes,
 * the rejection would end the process. The command itself fails as well, and is repeated.
 */
function keepAsking(node: { asking(): Promise<unknown> }): void {
  const asking = node.asking.bind(node);
  node.asking = () => {
    const asked = asking();
    asked.catch(() => undefined);
    return asked;
  };
}

/** Connects, and again where ioredis gave up, until the connection is closed. */
export function keepConnected(connection: Connection, isClosed: () => boolean): void {
  const connect = (): void => {
    if (!isClosed()) {
      connection.connect().catch(() => undefined);
    }
  };
  connection.on('connect', () => {
    if (isClosed()) {
      // Closed while it was connecting: ioredis has only now begun to watch the sentinels, and would do so for ever.
      connection.disconnect();
    }
  });
  // ioredis gives up if it learns of a failover while it asks a sentinel for the master, or if no sentinel answers and the
  // user's own options say so.
  connection.on('end', () => setTimeout(connect, AGAIN_MS).unref());
  connection.credentials?.askBefore(connection, isClosed);
  connect();
}

/** The server at the other end; empty for a cluster, which has one for each node, for a Unix socket, and while there is none. */
export function addressOf({ stream }: Connection): string {
  return stream?.remoteAddress === undefined ? '' : `${stream.remoteAddress}:${stream.remotePort}`;
}

async function makeClient({ source, credentials }: RedisOrigin, options: Readonly<Record<string, unknown>>): Promise<Connection> {
  if (isNodeRedisCluster(source)) {
    return new NodeRedisClusterConnection(new ClusterEndpoints(source, credentials));
  }
  if (isNodeRedis(source)) {
    return new NodeRedisConnection(endpointOf(source, fromFunction(credentials)));
  }
  const asked = credentials && new ReadCredentials(credentials);
  const current = asked ? () => asked.current : () => optionsOf(source);
  const connection = await (isCluster(source)
    ? makeCluster(source as RedisClient, options, current)
    : makeServer(source, options, current));
  if (asked) {
    connection.credentials = asked;
    connection.queuesForEver = true;
    connection.on('+node', (node: Connection) => asked.askAfter(node));
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
    // The answer to INFO is after that to SELECT: clients are ready before a database is refused otherwise, and lock in another one.
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
    // It needs one more right, and a missing right would not be reported. The nodes themselves answer that a cluster is down.
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

function refuseOptions(cause: unknown): never {
  throw cause instanceof LockConfigurationError ? cause : optionsError(cause as Error);
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
