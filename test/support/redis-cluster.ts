import { Cluster, type ClusterOptions } from 'ioredis';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort, RedisServer } from './redis-server';
import { until } from './until';

const SHARDS = 3;
const SLOTS = 16_384;
const SETTINGS = [
  ['--cluster-enabled', 'yes'],
  ['--cluster-node-timeout', '1500'],
  ['--cluster-require-full-coverage', 'no'],
  ['--repl-diskless-sync-delay', '0'],
].flat();

/** Flags of a node that is not to be counted on. */
const TROUBLE: ReadonlySet<string> = new Set(['fail', 'fail?', 'handshake', 'noaddr']);

type Options = Pick<ClusterOptions, 'natMap' | 'slotsRefreshTimeout' | 'maxRedirections'> & {
  redisOptions?: { username: string; password: string };
};

/** A line of CLUSTER NODES. */
interface NodeInfo {
  readonly server: RedisServer;
  readonly id: string;
  readonly flags: readonly string[];
  /** The id of its master; '-' for a master. */
  readonly masterId: string;
  /** First and last slot of each range. */
  readonly ranges: readonly (readonly [number, number])[];
}

/** A real Redis Cluster of the test's own: three masters, and a replica of each. */
export class RedisCluster {
  readonly nodes: readonly RedisServer[];
  readonly #folder: string;

  private constructor(nodes: readonly RedisServer[], folder: string) {
    this.nodes = nodes;
    this.#folder = folder;
  }

  static async start(...args: string[]): Promise<RedisCluster> {
    const folder = mkdtempSync(join(tmpdir(), 'lock-cluster-'));
    const nodes: RedisServer[] = [];
    for (let at = 0; at < 2 * SHARDS; at++) {
      // The default port of the bus is 10000 above the other, and may be none.
      const own = ['--dir', folder, '--cluster-config-file', `${at}.conf`, '--cluster-port', String(await freePort())];
      nodes.push(await RedisServer.start(...own, ...SETTINGS, ...args));
    }
    const cluster = new RedisCluster(nodes, folder);
    await cluster.#form();
    return cluster;
  }

  /** The masters that are not known to have failed. */
  async masters(): Promise<RedisServer[]> {
    return mastersIn(await this.#view());
  }

  async replicasOf(master: RedisServer): Promise<RedisServer[]> {
    const view = await this.#view();
    const id = idOf(view, master);
    return view.filter(({ masterId, flags }) => masterId === id && !flags.includes('fail')).map(({ server }) => server);
  }

  /** The node that serves the slot of a key: of a whole name, or of the part in braces alone. */
  async masterOf(key: string): Promise<RedisServer> {
    const slot = await this.slotOf(key);
    let owner: RedisServer | undefined;
    // After a failover or a move of the slot, a node may know no owner for a moment.
    await until(`that a node serves slot ${slot} of ${key}`, async () => {
      owner = ownerIn(await this.#view(), slot);
      return owner !== undefined;
    });
    return owner as RedisServer;
  }

  async slotOf(key: string): Promise<number> {
    return Promise.any(this.#running().map(({ client }) => client.cluster('KEYSLOT', key)));
  }

  /** A new client. With a `natMap`, it meets the nodes only at the addresses that stand there. */
  connect(options: Options = {}): Cluster {
    const { natMap } = options;
    const known = typeof natMap === 'object' ? Object.values(natMap) : this.nodes.map(({ port }) => ({ host: '127.0.0.1', port }));
    const client = new Cluster(known, options);
    // A failure shows in the commands.
    client.on('error', () => undefined);
    return client;
  }

  /**
   * Moves the slot of a key, with its keys, while clients use it. `midway` runs when the first of the keys has moved,
   * and when all have.
   */
  async reshard(key: string, to: RedisServer, midway?: () => Promise<unknown>): Promise<void> {
    const slot = await this.slotOf(key);
    const from = await this.masterOf(key);
    const view = await this.#view();
    await to.client.cluster('SETSLOT', slot, 'IMPORTING', idOf(view, from));
    await from.client.cluster('SETSLOT', slot, 'MIGRATING', idOf(view, to));
    for (let moved = 0; ; moved++) {
      const [name] = (await from.client.cluster('GETKEYSINSLOT', slot, 1)) as string[];
      if (moved === 1 || name === undefined) {
        await midway?.();
      }
      if (name === undefined) {
        break;
      }
      await from.client.call('MIGRATE', '127.0.0.1', to.port, name, 0, 5_000);
    }
    // The new owner first: the old one would send clients to a node that does not know yet that the slot is its own.
    for (const server of [to, from]) {
      await server.client.cluster('SETSLOT', slot, 'NODE', idOf(view, to));
    }
    await until('that every node knows who has the slot', async () => {
      const views = await Promise.all(this.#running().map(viewOf(this.nodes)));
      return views.every((known) => ownerIn(known, slot) === to);
    });
  }

  /** Kills a master, waits until a replica of it was promoted and every node knows, and answers which. */
  async failover(master: RedisServer): Promise<RedisServer> {
    const replicas = await this.replicasOf(master);
    await master.kill();
    return this.promoted(replicas);
  }

  /** Waits until every node that runs knows one of the replicas as a master. */
  async promoted(replicas: readonly RedisServer[]): Promise<RedisServer> {
    let found: RedisServer | undefined;
    await until('the promotion of a replica', async () => {
      const views = await Promise.all(this.#running().map(viewOf(this.nodes)));
      found = replicas.find((replica) => views.every((view) => mastersIn(view).includes(replica)));
      return found !== undefined;
    });
    return found as RedisServer;
  }

  /** Starts dead nodes, and waits until each follows whoever took its place, or serves its slots again. */
  async restart(...nodes: readonly RedisServer[]): Promise<void> {
    await Promise.all(nodes.map((node) => node.start()));
    await this.settled();
  }

  /** Undoes what a test did to the nodes: every one runs again. */
  async recover(): Promise<void> {
    for (const node of this.nodes) {
      node.resume();
    }
    await this.restart(...this.nodes.filter((node) => !node.running));
  }

  /**
   * Waits until every node that runs says so and knows an owner of each slot, and replicas follow their masters.
   * Not for while one is paused.
   */
  async settled(): Promise<void> {
    await until('a cluster that is in order', async () => {
      const running = this.#running();
      const sound = await Promise.all(
        running.map(async (server) => {
          const state = await server.client.cluster('INFO');
          const role = await server.client.info('replication');
          const view = await viewOf(this.nodes)(server);
          const others = view.filter((node) => running.includes(node.server));
          return (
            state.includes('cluster_state:ok') &&
            !role.includes('master_link_status:down') &&
            others.length === running.length &&
            mastersIn(others).length === SHARDS &&
            slotsIn(others) === SLOTS &&
            others.every(({ flags }) => !flags.some((flag) => TROUBLE.has(flag)))
          );
        }),
      );
      return !sound.includes(false);
    });
  }

  async stop(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.stop()));
    rmSync(this.#folder, { recursive: true });
  }

  async #form(): Promise<void> {
    const [first, ...others] = this.nodes as [RedisServer, ...RedisServer[]];
    const busPort = /@(\d+)/.exec(String(await first.client.call('CLUSTER', 'NODES')))?.[1] as string;
    const masters = this.nodes.slice(0, SHARDS);
    for (const [at, { client }] of masters.entries()) {
      await client.call('CLUSTER', 'SET-CONFIG-EPOCH', at + 1);
      await client.call('CLUSTER', 'ADDSLOTSRANGE', ...slotsOf(at));
    }
    for (const { client } of others) {
      await client.call('CLUSTER', 'MEET', '127.0.0.1', first.port, busPort);
    }
    for (const [at, { client }] of this.nodes.slice(SHARDS).entries()) {
      const id = await (masters[at] as RedisServer).client.call('CLUSTER', 'MYID');
      await until('that a replica knows its master', () =>
        client.call('CLUSTER', 'REPLICATE', String(id)).then(
          () => true,
          () => false,
        ),
      );
    }
    await this.settled();
  }

  #running(): RedisServer[] {
    return this.nodes.filter((node) => node.running);
  }

  /** The view of the first node that answers on all nodes. */
  #view(): Promise<NodeInfo[]> {
    return Promise.any(this.#running().map(viewOf(this.nodes)));
  }
}

function slotsOf(shard: number): readonly [number, number] {
  return [Math.floor((shard * SLOTS) / SHARDS), Math.floor(((shard + 1) * SLOTS) / SHARDS) - 1];
}

/** Asks a server for its view of the cluster. */
function viewOf(nodes: readonly RedisServer[]): (server: RedisServer) => Promise<NodeInfo[]> {
  return async ({ client }) => {
    const lines = String(await client.call('CLUSTER', 'NODES'))
      .trim()
      .split('\n');
    return lines.map((line) => {
      const [id = '', address = '', flags = '', masterId = '', , , , , ...ranges] = line.split(' ');
      const port = Number(/:(\d+)@/.exec(address)?.[1]);
      return {
        server: nodes.find((node) => node.port === port) as RedisServer,
        id,
        flags: flags.split(','),
        masterId,
        ranges: ranges.filter((range) => !range.startsWith('[')).map(readRange),
      };
    });
  };
}

function readRange(range: string): readonly [number, number] {
  const [first, last = first] = range.split('-').map(Number);
  return [first as number, last as number];
}

function mastersIn(view: readonly NodeInfo[]): RedisServer[] {
  return view.filter(({ flags }) => flags.includes('master') && !flags.includes('fail')).map(({ server }) => server);
}

function ownerIn(view: readonly NodeInfo[], slot: number): RedisServer | undefined {
  return view.find(({ ranges }) => ranges.some(([first, last]) => first <= slot && slot <= last))?.server;
}

/** How many slots have an owner. */
function slotsIn(view: readonly NodeInfo[]): number {
  return view.flatMap(({ ranges }) => ranges).reduce((sum, [first, last]) => sum + last - first + 1, 0);
}

function idOf(view: readonly NodeInfo[], server: RedisServer): string {
  return view.find((node) => node.server === server)?.id as string;
}
