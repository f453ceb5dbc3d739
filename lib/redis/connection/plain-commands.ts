import { LONGEST_COMMAND_MS } from '../../core/seam/time.js';
import { probe, PROBE_MS, type Probe } from '../../kit/probe.js';
import type { RedisKeys } from '../scripts/redis-keys.js';
import { productBy, refusesBy } from '../server-info.js';
import type { CommandTimeouts } from './command-timeouts.js';
import type { ConnectionFailures } from './connection-failures.js';
import { channelOfDatabase, keyPrefixOf, type Connection } from './connection.js';
import { isForbidden, isUnknownCommand, NO_CONNECTION } from './redis-errors.js';

/** The commands of a connection that run no script, each within its time. They are about no lock. */
export class PlainCommands {
  readonly #open: () => Promise<Connection>;
  readonly #ready: (limitMs: number) => Promise<Connection>;
  readonly #timeouts: CommandTimeouts;
  readonly #failures: ConnectionFailures;
  #maySeeSubscribers = true;

  /**
   * `ready` resolves once commands that are given to the connection are sent, and rejects where the connection must not
   * be used.
   */
  constructor(
    open: () => Promise<Connection>,
    ready: (limitMs: number) => Promise<Connection>,
    timeouts: CommandTimeouts,
    failures: ConnectionFailures,
  ) {
    this.#open = open;
    this.#ready = ready;
    this.#timeouts = timeouts;
    this.#failures = failures;
  }

  /** The reply to INFO; empty where that is forbidden, which the store can do without. */
  info(): Promise<string> {
    return this.#asked((connection) => this.#infoOf(connection, LONGEST_COMMAND_MS));
  }

  /**
   * Asks the server about itself, or each master of a cluster: the locks of a master that is full are refused, and
   * those of the others work.
   */
  async probe(): Promise<readonly PromiseSettledResult<Probe>[]> {
    const servers = await this.#open().then(shardsOf, () => [undefined]);
    return Promise.allSettled(servers.map((server) => this.#asked(() => this.#probeOf(server), PROBE_MS)));
  }

  /** The reply to a command that tells of the server. */
  ask(...words: readonly [string, ...string[]]): Promise<unknown> {
    return this.#asked((connection) => this.#timeouts.bound(connection.call(...words), LONGEST_COMMAND_MS));
  }

  /**
   * How many replicas confirm, within `withinMs`, the writes of the server until now, and a message, which is written
   * too where the user may publish. Nothing else is answered on the connection meanwhile.
   */
  async confirming(channel: string, replicas: number, withinMs: number): Promise<number> {
    const check = ['publish', channel, 'check'] as const;
    const pipeline = (await this.#ready(PROBE_MS)).pipeline([check, ['wait', replicas, withinMs]]);
    const [, waited] = (await this.#timeouts.bound(pipeline.exec(), PROBE_MS)) ?? [];
    return waited?.[0] ? 0 : Number(waited?.[1]);
  }

  /** The prefix that the client puts before the names of keys. */
  async keyPrefix(): Promise<string> {
    return keyPrefixOf(await this.#open());
  }

  /** The server itself, or the masters of a cluster, which is asked first where they are. */
  masters(): Promise<readonly Connection[]> {
    return this.#asked(async (connection) => {
      await this.#timeOf(connection, LONGEST_COMMAND_MS);
      return connection.nodes?.('master') ?? [connection];
    });
  }

  /** One step of SCAN: the next cursor, and the names of keys. */
  scan(node: Connection, cursor: string, pattern: string): Promise<readonly [string, readonly string[]]> {
    return this.#asked(async () => {
      const reply = await this.#timeouts.bound(node.call('scan', cursor, 'MATCH', pattern, 'COUNT', 1_000), LONGEST_COMMAND_MS);
      return reply as readonly [string, readonly string[]];
    });
  }

  /**
   * Sends a message to a process; without a process, to all processes whose keys are in the same database, with the
   * same prefix of the client. Rejects with the error of the client, as where the user may not publish.
   */
  async publish(keys: RedisKeys, message: string, process?: string): Promise<void> {
    const connection = await this.#ready(LONGEST_COMMAND_MS);
    const channel = process === undefined ? channelOfDatabase(connection, keys.everybody) : keys.wake(process);
    await this.#timeouts.bound(connection.publish(channel, message), LONGEST_COMMAND_MS);
  }

  /**
   * Whether anybody is subscribed to a channel at this server. True where the user may not ask, who is not asked again.
   */
  async isHeard(channel: string): Promise<boolean> {
    if (!this.#maySeeSubscribers) {
      return true;
    }
    try {
      const connection = await this.#ready(PROBE_MS);
      const reply = await this.#timeouts.bound(connection.call('pubsub', 'numsub', channel), PROBE_MS);
      return Number((reply as readonly unknown[])[1]) !== 0;
    } catch (error) {
      this.#maySeeSubscribers = !isForbidden(error) && !isUnknownCommand(error);
      return true;
    }
  }

  /**
   * Rejects where the user may not follow a slot of a cluster that moves. A refusal later on would end the process:
   * ioredis does not handle it.
   */
  tryAsking(): Promise<void> {
    return this.#asked(async (connection) => {
      if (connection.isCluster) {
        // PING, allowed or not, ends what ASKING begins: no command on a key may come next.
        const [asking] = (await this.#timeouts.bound(connection.pipeline([['asking'], ['ping']]).exec(), LONGEST_COMMAND_MS)) ?? [];
        if (asking?.[0]) {
          throw asking[0];
        }
      }
    });
  }

  /** Asks a server about itself; rejects where there is no connection to it. */
  async #probeOf(server: Connection | undefined): Promise<Probe> {
    if (!server) {
      throw new Error(NO_CONNECTION);
    }
    const [clock, info] = await Promise.all([
      probe(async () => ({ serverMs: await this.#timeOf(server, PROBE_MS) })),
      this.#infoOf(server, PROBE_MS),
    ]);
    return { ...clock, server: productBy(info)?.name, refuses: refusesBy(info) };
  }

  async #infoOf(server: Connection, limitMs: number): Promise<string> {
    try {
      return String(await this.#timeouts.bound(server.call('info'), limitMs));
    } catch (error) {
      if (isForbidden(error) || isUnknownCommand(error)) {
        return '';
      }
      throw error;
    }
  }

  /** The time of a server's clock, in ms since 1970; on a cluster, the clock of any node. */
  async #timeOf(server: Connection, limitMs: number): Promise<number> {
    const [seconds, micros] = (await this.#timeouts.bound(server.call('time'), limitMs)) as readonly unknown[];
    return Number(seconds) * 1_000 + Number(micros) / 1_000;
  }

  /** Rejects with lock errors. */
  async #asked<T>(ask: (connection: Connection) => Promise<T>, limitMs: number = LONGEST_COMMAND_MS): Promise<T> {
    try {
      return await ask(await this.#ready(limitMs));
    } catch (error) {
      throw this.#failures.explain(error, '');
    }
  }
}

/**
 * The servers that have the locks: the server at the other end, or the masters of a cluster in the order of their
 * slots, as far as the client knows. Undefined stands for a master to which the client has given up its connection;
 * then the nodes are asked for again, so that the client makes another connection.
 */
function shardsOf(connection: Connection): readonly (Connection | undefined)[] {
  const masters = connection.nodes?.('master') ?? [];
  const shards = connection.slots ? inOrder(connection.slots, masters) : masters;
  if (shards.includes(undefined)) {
    connection.refreshSlotsCache?.();
  }
  // A cluster that has not told its slots yet is asked as a whole.
  return shards.length > 0 ? shards : [connection];
}

function inOrder(slots: NonNullable<Connection['slots']>, masters: readonly Connection[]): readonly (Connection | undefined)[] {
  const addresses = new Set(slots.flatMap((nodes) => nodes?.[0] ?? []));
  const known = new Map(masters.map((node) => [`${node.options.host}:${node.options.port}`, node]));
  return [...addresses].map((address) => known.get(address));
}
