import { EventEmitter } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Argument } from '../../scripts/script.js';
import { ClusterNodes } from './cluster-nodes.js';
import { keyIn, redirectionIn, type SlotTable } from './cluster-slots.js';
import type { Connection, Pipeline } from '../connection.js';
import type { NodeRedisConnection } from './server-connection.js';
import type { NodeRedisClusterWays } from './cluster-ways.js';
import { NodeRedisPipeline, scriptWords } from './pipeline.js';
import { NO_CONNECTION } from '../redis-errors.js';

/** How often a command is sent on that a node did not carry out, and after how many milliseconds where no node was named. */
const MOST_REDIRECTIONS = 4;
const AGAIN_MS = 30;

/**
 * Connections to the nodes of a cluster, with the interface of ioredis' Cluster: one to each master that has been asked for, and one more for
 * a subscription, on any master. A command goes to the master of its key, and again only where it was not sent, or an error reply says that
 * it was not carried out.
 */
export class NodeRedisClusterConnection implements Connection {
  readonly isCluster = true;
  status = 'wait';
  readonly options: Connection['options'];
  readonly #backOff: (attempts: number) => number;
  readonly #keyPrefix: string;
  readonly #events = new EventEmitter();
  readonly #nodes: ClusterNodes;
  #opening: Promise<void> | undefined;
  #subscription: NodeRedisConnection | undefined;
  /** How often a subscription has ended since one was acknowledged. */
  #endings = 0;
  #again: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(ways: NodeRedisClusterWays, backOff: (attempts: number) => number) {
    this.#backOff = backOff;
    this.#keyPrefix = ways.keyPrefix;
    this.#nodes = new ClusterNodes(ways, backOff, (error) => this.#events.emit('node error', error));
    this.options = { enableOfflineQueue: true, keyPrefix: ways.keyPrefix };
  }

  get slots(): SlotTable {
    return this.#nodes.slots;
  }

  nodes(_role: 'master'): NodeRedisConnection[] {
    return this.#nodes.masters;
  }

  refreshSlotsCache(): void {
    this.#nodes.refreshSoon();
  }

  on(event: string, listener: (...args: never[]) => void): void {
    this.#events.on(event, listener as (...args: unknown[]) => void);
  }

  connect(): Promise<void> {
    return (this.#opening ??= this.#open());
  }

  /** Where it is told to connect again, the subscription is made anew, on another node maybe. */
  disconnect(reconnect = false): void {
    if (reconnect) {
      this.#subscription?.stream?.destroy();
      return;
    }
    this.#closed = true;
    this.status = 'end';
    clearTimeout(this.#again);
    const subscription = this.#subscription;
    this.#subscription = undefined;
    subscription?.disconnect();
    this.#nodes.close();
    this.#events.emit('close');
  }

  evalsha(sha: string, ...parameters: readonly Argument[]): Promise<unknown> {
    return this.#send(scriptWords('evalsha', sha, parameters, this.#keyPrefix));
  }

  eval(source: string, ...parameters: readonly Argument[]): Promise<unknown> {
    return this.#send(scriptWords('eval', source, parameters, this.#keyPrefix));
  }

  /** Commands to the node of the first key in them, or to any. None of them is sent on. */
  pipeline(): Pipeline {
    const sendTo = (commands: readonly (readonly string[])[]): ((words: readonly string[]) => Promise<unknown>) => {
      const found = this.#nodes.onceKnown(commands.map(keyIn).find((key) => key !== undefined));
      return (words) => found.then((node) => node.send(words));
    };
    return new NodeRedisPipeline(sendTo, this.#keyPrefix);
  }

  async call(command: string, ...words: readonly Argument[]): Promise<unknown> {
    return (await this.#nodes.onceKnown()).call(command, ...words);
  }

  async info(): Promise<string> {
    return (await this.#nodes.onceKnown()).info();
  }

  async time(): Promise<unknown> {
    return (await this.#nodes.onceKnown()).time();
  }

  async ping(): Promise<unknown> {
    return (await this.#nodes.onceKnown()).ping();
  }

  async publish(channel: string, message: string): Promise<unknown> {
    return (await this.#nodes.onceKnown()).publish(channel, message);
  }

  async scan(cursor: string, ...parameters: readonly Argument[]): Promise<unknown> {
    return (await this.#nodes.onceKnown()).scan(cursor, ...parameters);
  }

  /** Where the connection of the subscription is lost, the next event `ready` asks for another one. */
  async subscribe(...channels: readonly string[]): Promise<unknown> {
    const node = this.#nodes.another();
    const before = this.#subscription;
    this.#subscription = node;
    before?.disconnect();
    node.on('message', (channel: string, message: string) => this.#events.emit('message', channel, message));
    node.on('close', () => this.#subscriptionEnded(node));
    try {
      await node.connect();
    } catch (cause) {
      // What the connection was refused is not what the subscription is.
      throw new Error(NO_CONNECTION, { cause });
    }
    const subscribed = await node.subscribe(...channels);
    this.#endings = 0;
    return subscribed;
  }

  async #open(): Promise<void> {
    this.status = 'connecting';
    for (let attempts = 1; !this.#closed; attempts++) {
      try {
        await this.#nodes.refresh();
        break;
      } catch (error) {
        this.#events.emit('error', error);
        await sleep(this.#backOff(attempts), undefined, { ref: false });
      }
    }
    if (!this.#closed) {
      this.status = 'ready';
      this.#events.emit('connect');
      this.#events.emit('ready');
    }
  }

  async #send(words: readonly string[]): Promise<unknown> {
    const key = keyIn(words);
    let node = this.slots.length > 0 ? this.#nodes.of(key) : await this.#nodes.onceKnown(key);
    let asking = false;
    for (let redirections = 0; ; redirections++) {
      try {
        return await (asking ? this.#askAndSend(node, words) : node.send(words));
      } catch (error) {
        const redirection = redirectionIn(error, node.host);
        if (redirections === MOST_REDIRECTIONS || !(redirection ?? mayPass(error))) {
          throw error;
        }
        if (!redirection) {
          await sleep(AGAIN_MS, undefined, { ref: false });
        } else if (redirection.how === 'MOVED') {
          this.#nodes.moved(redirection.slot, redirection.address);
        }
        asking = redirection?.how === 'ASK';
        node = redirection ? this.#nodes.at(redirection.address) : this.#nodes.of(key);
      }
    }
  }

  /** ASKING is for the command that comes next on the same connection. */
  async #askAndSend(node: NodeRedisConnection, words: readonly string[]): Promise<unknown> {
    const [asked, reply] = await Promise.allSettled([node.send(['ASKING']), node.send(words)]);
    if (reply.status === 'fulfilled') {
      return reply.value;
    }
    throw asked.status === 'rejected' ? asked.reason : reply.reason;
  }

  #subscriptionEnded(node: NodeRedisConnection): void {
    if (this.#subscription !== node) {
      return;
    }
    this.#subscription = undefined;
    node.disconnect();
    this.#events.emit('close');
    this.#again = setTimeout(() => void this.#subscribeAgain(), this.#backOff(++this.#endings)).unref();
  }

  async #subscribeAgain(): Promise<void> {
    await this.#nodes.refresh().catch(() => undefined);
    if (!this.#closed) {
      this.#events.emit('ready');
    }
  }
}

/** Whether a command was not carried out for a reason that passes by itself, or with another node for its slot. */
function mayPass(error: unknown): boolean {
  const { name, message } = error as Error;
  return message === NO_CONNECTION || (name === 'ReplyError' && /^(TRYAGAIN|CLUSTERDOWN)\b/.test(message));
}
