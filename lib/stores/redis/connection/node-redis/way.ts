import type { NodeRedisClient } from '../redis-source.js';

/** What is used of a client that makes one connection. */
export interface OneConnection {
  readonly isReady: boolean;
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

/** What the store uses of the options of a client of node-redis, or of one to a server of a group. */
export interface ClientOptions {
  readonly socket?: SocketOptions;
  readonly keyPrefix?: { toString(): string };
}

/** How the connections to a server are made, of which each is made once. */
export interface NodeRedisWay {
  /** What is known of the server beforehand. */
  readonly socket: SocketOptions;
  /** What the client puts before the names of keys. */
  readonly keyPrefix: string;
  /** A client that is not yet connected. `signal` ends its sockets, also those that are being connected. */
  make(lookup: Lookup, signal: AbortSignal): OneConnection;
}

/**
 * Options in which each connection differs from the client that was given: it answers as RESP 2 does and in no other types, makes no
 * other connection by itself, and does not end where it is idle. `readonly` would ask a replica.
 */
export function fitting(socket: SocketOptions, lookup: Lookup, signal: AbortSignal): object {
  return {
    RESP: 2,
    commandOptions: undefined,
    commandsQueueMaxLength: undefined,
    clientSideCache: undefined,
    emitInvalidate: false,
    maintNotifications: 'disabled',
    pingInterval: undefined,
    readonly: false,
    socket: { ...socket, reconnectStrategy: false, socketTimeout: undefined, lookup, signal },
  };
}

/** The way of a client for one server. */
export function wayOf(source: NodeRedisClient, overrides: ClientOptions = {}): NodeRedisWay {
  const { options } = source as { readonly options?: ClientOptions };
  const socket = { ...options?.socket, ...overrides.socket };
  const duplicate = source.duplicate.bind(source) as (overrides: object) => OneConnection;
  return {
    socket,
    keyPrefix: String(overrides.keyPrefix ?? options?.keyPrefix ?? ''),
    make: (lookup, signal) => duplicate({ ...overrides, ...fitting(socket, lookup, signal) }),
  };
}
