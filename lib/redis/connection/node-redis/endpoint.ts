import type { NodeRedisClient } from '../redis-source.js';
import { optionsError } from '../redis-errors.js';
import { watchedProvider, type CredentialsProvider } from './credentials.js';

/** The part that is used of a client that makes one connection. */
export interface OneConnection {
  readonly isReady: boolean;
  /** Whether it has a subscription. */
  readonly isPubSubActive: boolean;
  readonly options?: { readonly socket?: SocketOptions };
  connect(): Promise<unknown>;
  destroy(): void;
  sendCommand(words: readonly string[]): Promise<unknown>;
  subscribe(channels: readonly string[], listener: (message: string, channel: string) => void): Promise<unknown>;
  on(event: string, listener: (error: Error) => void): unknown;
}

export type Lookup = (host: string, options: object, callback: (error: Error | null, found: unknown, family?: unknown) => void) => void;

export interface SocketOptions {
  readonly host?: string;
  readonly port?: number;
  readonly path?: string;
  readonly lookup?: Lookup;
}

/** The part that the store uses of the options of a client of node-redis, or of a client of a node of a cluster. */
export interface ClientOptions {
  readonly socket?: SocketOptions;
  readonly database?: number;
  readonly keyPrefix?: { toString(): string };
  readonly credentialsProvider?: CredentialsProvider;
}

/** A server, and how clients for it are made, each of which connects once. */
export interface Endpoint {
  /** The socket options that are known beforehand. */
  readonly socket: SocketOptions;
  readonly database: number | undefined;
  /** The prefix that the client puts before the names of keys. */
  readonly keyPrefix: string;
  /**
   * A client that is not yet connected. `signal` ends its sockets, also those that are being connected. `failed` is
   * called when a connection cannot be made or is lost: the client has not ended then. `tell` is called when
   * credentials are asked for, and when they are there.
   */
  make(
    lookup: Lookup,
    signal: AbortSignal,
    failed: (cause: Error) => void,
    tell: (event: 'credentials' | 'connect') => void,
  ): OneConnection;
}

/** The endpoint of a client for one server, or of that client with other options. */
export function endpointOf(source: NodeRedisClient, overrides: ClientOptions = {}): Endpoint {
  const { options } = source as { readonly options?: ClientOptions };
  const socket = overrides.socket ?? options?.socket ?? {};
  const provider = overrides.credentialsProvider ?? options?.credentialsProvider;
  const duplicate = source.duplicate.bind(source) as (overrides: object) => OneConnection;
  return {
    socket,
    database: options?.database,
    keyPrefix: String(overrides.keyPrefix ?? options?.keyPrefix ?? ''),
    make: (lookup, signal, failed, tell) => {
      const subscribed = (): boolean => client.isPubSubActive;
      const client = orRefused(() =>
        duplicate({
          // The URL was read when the client was made. Read again, its credentials would go before those of the
          // provider.
          url: undefined,
          ...overrides,
          ...FITTING,
          ...(provider && { credentialsProvider: watchedProvider(provider, signal, tell, subscribed) }),
          socket: { ...socket, reconnectStrategy: giveUp(failed), socketTimeout: undefined, lookup, signal },
        }),
      );
      return client;
    },
  };
}

/**
 * The options in which each connection differs from the client that was given: it answers as RESP 2 does and in no
 * other types, makes no other connection by itself, and does not end where it is idle. `readonly` would ask a replica.
 */
const FITTING = {
  RESP: 2,
  // Version 6 would make a timer for each command.
  commandOptions: { timeout: undefined },
  commandsQueueMaxLength: undefined,
  clientSideCache: undefined,
  emitInvalidate: false,
  maintNotifications: 'disabled',
  pingInterval: undefined,
  readonly: false,
};

/** The options of a root of a cluster are read only where a client for it is made. */
function orRefused<T>(make: () => T): T {
  try {
    return make();
  } catch (error) {
    throw optionsError(error as Error);
  }
}

/** A client of version 5 that is destroyed after it gave up by itself stays in lists of node-redis. */
function giveUp(failed: (cause: Error) => void): (attempts: number, cause: Error) => false {
  return (_attempts, cause) => {
    failed(cause);
    return false;
  };
}
