import { LockConfigurationError } from '../../../core/words/errors.js';
import type { CredentialsFunction } from '../credentials.js';
import { partsOf } from './cluster-slots.js';
import { fromFunction } from './credentials.js';
import { endpointOf, type ClientOptions, type Endpoint, type OneConnection, type SocketOptions } from './endpoint.js';
import type { NodeRedisClient, NodeRedisCluster } from '../redis-source.js';

type Address = { readonly host: string; readonly port: number };

interface ClusterOptions {
  readonly rootNodes: readonly ClientOptions[];
  readonly defaults?: ClientOptions;
  readonly nodeAddressMap?: Readonly<Record<string, Address>> | ((address: string) => Address | undefined);
  readonly keyPrefix?: { toString(): string };
}

/** Nobody connects there: the name is not looked up. */
const NOWHERE = {
  host: 'nowhere',
  port: 1,
  lookup: (_host: string, _options: object, callback: (error: Error) => void) => callback(new Error('there is nothing')),
  reconnectStrategy: false,
} as const;

/** The nodes of a cluster, each by clients for one server of the version of node-redis that the given client is of. */
export class ClusterEndpoints {
  readonly keyPrefix: string;
  readonly #options: ClusterOptions;
  readonly #client: NodeRedisClient;
  readonly #credentials: ClientOptions;

  constructor(source: NodeRedisCluster, credentials?: CredentialsFunction) {
    this.#options = optionsOf(source) as ClusterOptions;
    this.keyPrefix = String(this.#options.keyPrefix ?? '');
    this.#client = clientOf(source);
    this.#credentials = fromFunction(credentials);
  }

  /** The endpoints from which the other nodes are found. */
  roots(): Endpoint[] {
    return this.#options.rootNodes.map((root) => this.#endpoint(root, root.socket));
  }

  /** The node with an address as the cluster tells it. */
  node(address: string): Endpoint {
    const { nodeAddressMap } = this.#options;
    const mapped = typeof nodeAddressMap === 'function' ? nodeAddressMap(address) : nodeAddressMap?.[address];
    return this.#endpoint({}, mapped ?? partsOf(address));
  }

  #endpoint(options: ClientOptions, socket: SocketOptions | undefined): Endpoint {
    const { defaults } = this.#options;
    return endpointOf(this.#client, {
      ...defaults,
      ...options,
      ...this.#credentials,
      keyPrefix: this.keyPrefix,
      socket: { ...defaults?.socket, ...socket },
    });
  }
}

/**
 * A client for a single server, which each endpoint duplicates with its own options. A cluster client makes such
 * clients itself, so a duplicate of the given cluster client makes this one. The duplicate has no options for its
 * nodes, and connects to none.
 */
function clientOf(source: NodeRedisCluster): NodeRedisClient {
  const duplicate = source.duplicate.bind(source) as (overrides: object) => {
    nodeClient(node: object): Promise<unknown>;
    on(event: string, listener: () => void): unknown;
  };
  const cluster = duplicate({
    RESP: 2,
    clientSideCache: undefined,
    minimizeConnections: true,
    nodeAddressMap: () => NOWHERE,
    defaults: {},
  });
  cluster.on('error', () => undefined);
  const node: { address: string; host: string; port: number; readonly: boolean; client?: NodeRedisClient } = {
    address: 'nowhere:1',
    host: 'nowhere',
    port: 1,
    readonly: false,
  };
  const connecting = cluster.nodeClient(node);
  const { client } = node;
  connecting.catch(() => undefined);
  try {
    // Otherwise the client gives up by itself, and stays in lists of node-redis. It can be duplicated all the same.
    (client as unknown as OneConnection).destroy();
  } catch {
    // The client was not open yet.
  }
  return client as NodeRedisClient;
}

/**
 * The options that a cluster client was made with. It does not show them: `duplicate()` hands them to the constructor
 * of the client, and here to another one.
 */
function optionsOf(source: NodeRedisCluster): object {
  const prototype = Object.create(source, { constructor: { value: Noted } }) as NodeRedisCluster;
  const options = (Object.create(prototype) as NodeRedisCluster).duplicate();
  if (!(options instanceof Noted)) {
    throw new LockConfigurationError(
      'RedisLockStore cannot read the options of this version of node-redis. Use version 5 or 6 of the package redis, or a client of ioredis.',
    );
  }
  return options;
}

// oxlint-disable-next-line typescript/no-extraneous-class -- a client's own duplicate() calls its constructor
class Noted {
  constructor(options: object) {
    Object.assign(this, options);
  }
}
