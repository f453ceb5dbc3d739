import type { Argument } from '../scripts/script.js';

/** The part of a connection's socket that the store uses. */
export interface Socket {
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
  destroy(reason?: Error): void;
  on?(event: 'error', listener: () => void): unknown;
  once?(event: 'data', listener: (chunk: Buffer) => void): unknown;
}

/** A command with its arguments. */
export type CommandWords = readonly [command: string, ...words: readonly Argument[]];

/** Commands that are sent together: for each its error or its reply. */
export interface Pipeline {
  exec(): Promise<(readonly [Error | null, unknown])[] | null>;
}

/**
 * The part that the store uses of a client of its own. A client of ioredis is a `Connection`; others are wrapped in
 * one.
 */
export interface Connection {
  readonly isCluster?: boolean;
  /**
   * Whether commands wait for its first connection, however long that takes. Commands of a cluster and of Sentinel do
   * so anyway.
   */
  queuesForEver?: boolean;
  readonly status: string;
  readonly options: {
    enableOfflineQueue?: boolean;
    readonly host?: string;
    readonly port?: number;
    readonly db?: number | undefined;
    readonly keyPrefix?: string;
    readonly redisOptions?: { readonly keyPrefix?: string };
    readonly sentinels?: unknown;
  };
  /** The socket of a single connection; a cluster has one per node, and none here. */
  readonly stream?: Socket | null;
  /** Sends a command. The keys of a script get the prefix of the client. */
  call(...command: CommandWords): Promise<unknown>;
  /** On a cluster, all of them go to the node of their keys. */
  pipeline(commands: readonly CommandWords[]): Pipeline;
  /**
   * For each slot of a cluster the addresses of its nodes, the master first; undefined where `nodes` has all masters in
   * this order.
   */
  readonly slots?: readonly (readonly string[] | undefined)[];
  /** Asks again which node of a cluster serves which slots. */
  refreshSlotsCache?(...callback: readonly unknown[]): unknown;
  publish(channel: string, message: string): Promise<unknown>;
  subscribe(...channels: readonly string[]): Promise<unknown>;
  /** The nodes of a cluster that are known. */
  nodes?(role: 'master'): readonly Connection[];
  on(event: string, listener: (...args: never[]) => void): unknown;
  emit(event: string, ...args: readonly unknown[]): unknown;
  connect(): Promise<void>;
  /** User and password from a function of the store, where the client does not ask it by itself. */
  credentials?: { askBefore(connection: Connection, isClosed: () => boolean): void } | undefined;
  disconnect(reconnect?: boolean): void;
}

/** The prefix that the client puts before the names of keys. */
export function keyPrefixOf({ options }: Connection): string {
  return options.keyPrefix ?? options.redisOptions?.keyPrefix ?? '';
}

/**
 * The channel of all processes whose keys are in the same database, with the same prefix of the client. A server has
 * one channel of a name for all its databases, so database and prefix are part of the name.
 */
export function channelOfDatabase(connection: Connection, channel: string): string {
  const { db = 0 } = connection.options;
  const keyPrefix = keyPrefixOf(connection);
  return db === 0 && keyPrefix === '' ? channel : `${channel}:${db}:${keyPrefix}`;
}
