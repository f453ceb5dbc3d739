import { LockConfigurationError } from '../../core/words/errors.js';
import type { Connection } from './connection.js';
import { boundHandshake } from './handshake.js';
import { NodeRedisConnection } from './node-redis/server-connection.js';
import { NodeRedisClusterConnection } from './node-redis/cluster-connection.js';
import { ClusterEndpoints } from './node-redis/cluster-endpoints.js';
import { fromFunction } from './node-redis/credentials.js';
import { endpointOf } from './node-redis/endpoint.js';
import { makeIoredis } from './ioredis-client.js';
import { optionsError } from './redis-errors.js';
import { isNodeRedis, isNodeRedisCluster, type RedisOrigin } from './redis-source.js';

/** After how many milliseconds a connection that ioredis gave up is made again. */
const AGAIN_MS = 500;
/** A connection of the store's own, not yet connected, that fails fast and comes back by itself. */
export async function makeConnection(origin: RedisOrigin, options: Readonly<Record<string, unknown>>): Promise<Connection> {
  const connection = await makeClient(origin, options).catch(refuseOptions);
  boundHandshake(connection);
  connection.on('+node', keepAsking);
  outliveSecondErrors(connection);
  return connection;
}

/**
 * ioredis hears the first error of a socket only. With TLS a second error may come, as where a certificate is refused:
 * it would end the process.
 */
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
 * ioredis sends ASKING before a command that a node redirects while a slot moves, and awaits no answer. Where that
 * connection closes, the rejection would end the process. The command itself fails as well, and is repeated.
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
  // ioredis gives up if it learns of a failover while it asks a sentinel for the master, or if no sentinel answers and
  // the user's own options say so.
  connection.on('end', () => setTimeout(connect, AGAIN_MS).unref());
  connection.credentials?.askBefore(connection, isClosed);
  connect();
}

/**
 * The server at the other end; empty for a cluster, which has one for each node, for a Unix socket, and while there is
 * none.
 */
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
  return makeIoredis(source, credentials, options);
}

function refuseOptions(cause: unknown): never {
  throw cause instanceof LockConfigurationError ? cause : optionsError(cause as Error);
}
