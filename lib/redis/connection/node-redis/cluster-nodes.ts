import { AsyncResource } from 'node:async_hooks';
import { partsOf, slotOfKey, topologyIn, type SlotTable, type Topology } from './cluster-slots.js';
import { boundHandshake } from '../handshake.js';
import { NodeRedisConnection } from './server-connection.js';
import type { ClusterEndpoints } from './cluster-endpoints.js';
import type { Endpoint } from './endpoint.js';
import { NO_CONNECTION } from '../redis-errors.js';

/** After how long without an answer a connection to a node counts as half open, in milliseconds. */
const SILENCE_MS = 2_000;
/** How long a node may take to answer which node has which slots, in milliseconds. */
const SLOTS_MS = 2_000;

/** The masters of a cluster: their slots, and a connection to each master that has been asked for. */
export class ClusterNodes {
  readonly #endpoints: ClusterEndpoints;
  readonly #onError: (error: Error) => void;
  readonly #nodes = new Map<string, NodeRedisConnection>();
  #slots: SlotTable = [];
  /**
   * All nodes that were known last: where the connected nodes and the roots are away, a replica may say who took their
   * place.
   */
  #known: ReadonlySet<string> = new Set();
  #refreshing: Promise<void> | undefined;
  /** The connection by which a root is asked for the nodes of all slots. */
  #asked: NodeRedisConnection | undefined;
  #closed = false;

  constructor(endpoints: ClusterEndpoints, onError: (error: Error) => void) {
    this.#endpoints = endpoints;
    this.#onError = onError;
  }

  /** In the order of their slots; none while nobody is known to have any. */
  get masters(): NodeRedisConnection[] {
    return this.#addresses.map((address) => this.at(address));
  }

  /** A connection of its own to any master, for the caller to close. */
  another(): NodeRedisConnection {
    const address = oneOf(this.#addresses);
    return this.#connection(this.#endpoints.node(address), address);
  }

  /** Any master but the master of a connection; undefined where there is no other. */
  otherThan({ options: { host, port } }: NodeRedisConnection): NodeRedisConnection | undefined {
    const others = this.#addresses.filter((address) => address !== `${host}:${port}`);
    return others.length > 0 ? this.at(oneOf(others)) : undefined;
  }

  /** The node of a key; for no key, or a slot that nobody is known to have, any. */
  of(key: string | undefined): NodeRedisConnection {
    const address = key === undefined ? undefined : this.#slots[slotOfKey(key)];
    return address === undefined ? this.#any() : this.at(address);
  }

  /** The node of a key. While no slot is known, it waits for the answer of the node that is being asked. */
  async onceKnown(key?: string): Promise<NodeRedisConnection> {
    if (this.#slots.length === 0) {
      await this.#refreshing?.catch(() => undefined);
    }
    return this.of(key);
  }

  /** The node at an address, also where it has no slot yet. */
  at(address: string): NodeRedisConnection {
    return this.#nodes.get(address) ?? this.#join(address);
  }

  /**
   * Bound to the context in which the store was opened: a connection must not keep the context of the call that needed
   * it first.
   */
  readonly #join = AsyncResource.bind((address: string): NodeRedisConnection => {
    const node = this.#connection(this.#endpoints.node(address), address);
    if (this.#closed) {
      return node;
    }
    this.#nodes.set(address, node);
    node.on('error', this.#onError);
    node.on('close', () => {
      // A replica may have taken its place.
      if (this.#nodes.get(address) === node) {
        this.refreshSoon();
      }
    });
    node.connect().catch(() => undefined);
    return node;
  });

  /** A node named the node of a slot. Other slots may have moved as well. */
  moved(slot: number, address: string): void {
    this.#slots[slot] = address;
    this.refreshSoon();
  }

  refreshSoon(): void {
    if (!this.#closed) {
      this.refresh().catch(() => undefined);
    }
  }

  /** Asks for the nodes of all slots. The knowledge of a node may be old: a redirection corrects it. */
  refresh(): Promise<void> {
    return (this.#refreshing ??= this.#refresh().finally(() => {
      this.#refreshing = undefined;
    }));
  }

  close(): void {
    this.#closed = true;
    this.#asked?.disconnect();
    const nodes = [...this.#nodes.values()];
    this.#nodes.clear();
    nodes.forEach((node) => node.disconnect());
  }

  async #refresh(): Promise<void> {
    const errors: unknown[] = [];
    const known = [...this.#known].map((address) => this.#endpoints.node(address));
    for (const node of [...shuffled(this.#connected()), ...shuffled(this.#endpoints.roots()), ...shuffled(known)]) {
      if (this.#closed) {
        throw new Error(NO_CONNECTION);
      }
      try {
        const { slots, nodes } = await this.#topologyBy(node);
        this.#slots = slots;
        this.#known = nodes;
        this.#leave();
        return;
      } catch (error) {
        errors.push(error);
      }
    }
    throw errors.find((error) => error instanceof Error && error.name === 'ReplyError') ?? errors.at(-1);
  }

  async #topologyBy(node: NodeRedisConnection | Endpoint): Promise<Topology> {
    if (node instanceof NodeRedisConnection) {
      return topologyIn(await node.call('CLUSTER', 'SLOTS'), node.host);
    }
    const connection = this.#connection(node);
    this.#asked = connection;
    let late: NodeJS.Timeout | undefined;
    const bound = (): void => {
      clearTimeout(late);
      late = setTimeout(() => connection.stream?.destroy(new Error(`it did not answer within ${SLOTS_MS} ms`)), SLOTS_MS).unref();
    };
    bound();
    connection.on('credentials', () => clearTimeout(late));
    connection.on('connect', bound);
    try {
      await connection.connect();
      return topologyIn(await connection.call('CLUSTER', 'SLOTS'), connection.host);
    } finally {
      clearTimeout(late);
      connection.disconnect();
    }
  }

  /** A connected node, where there is one; else a node that is not known to be away. */
  #any(): NodeRedisConnection {
    const connected = this.#connected();
    if (connected.length > 0) {
      return oneOf(connected);
    }
    const hopeful = this.#addresses.filter((address) => this.#nodes.get(address)?.status !== 'reconnecting');
    return this.at(oneOf(hopeful.length > 0 ? hopeful : this.#addresses));
  }

  /** Closes the connections to nodes that have no slots any more. */
  #leave(): void {
    const addresses = this.#addresses;
    for (const [address, node] of this.#nodes) {
      if (!addresses.includes(address)) {
        this.#nodes.delete(address);
        node.disconnect();
      }
    }
  }

  #connection(endpoint: Endpoint, address?: string): NodeRedisConnection {
    const known = address === undefined ? {} : partsOf(address);
    const connection = new NodeRedisConnection(endpoint, { ...known, silenceMs: SILENCE_MS });
    boundHandshake(connection);
    // Without a listener, an error would end the process.
    connection.on('error', () => undefined);
    return connection;
  }

  get #addresses(): string[] {
    return [...new Set(this.#slots)].filter((address) => address !== undefined);
  }

  #connected(): NodeRedisConnection[] {
    return [...this.#nodes.values()].filter(({ status }) => status === 'ready');
  }
}

/** A random member; throws where there is none. */
function oneOf<T>(some: readonly T[]): T {
  if (some.length === 0) {
    throw new Error(NO_CONNECTION);
  }
  return some[Math.floor(Math.random() * some.length)] as T;
}

function shuffled<T>(some: readonly T[]): T[] {
  return some.map((one) => ({ one, at: Math.random() })).toSorted((a, b) => a.at - b.at).map(({ one }) => one); // prettier-ignore
}
