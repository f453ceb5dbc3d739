import { setTimeout as sleep } from 'node:timers/promises';
import type { Connection } from '../connection.js';
import { backOff } from '../handshake.js';
import { NO_CONNECTION } from '../redis-errors.js';
import { ClusterNodes } from './cluster-nodes.js';
import { keyIn, redirectionIn } from './cluster-slots.js';
import type { ClusterEndpoints } from './cluster-endpoints.js';
import { NodeRedisCommands, type Words } from './commands.js';
import type { NodeRedisConnection } from './server-connection.js';

/**
 * How often a command is sent on that a node did not carry out, and after how many milliseconds where no node was
 * named.
 */
const MOST_REDIRECTIONS = 4;
const AGAIN_MS = 30;

/**
 * Connections to the nodes of a cluster, with the interface of ioredis' Cluster: one to each master that has been asked
 * for, and one more for a subscription, on any master. A command goes to the master of its key. It is sent again only
 * where it was not sent, or an error reply says that it was not carried out.
 */
export class NodeRedisClusterConnection extends NodeRedisCommands implements Connection {
  readonly isCluster = true;
  readonly #nodes: ClusterNodes;
  #opening: Promise<void> | undefined;
  #subscription: NodeRedisConnection | undefined;
  /** How often a subscription has ended since one was acknowledged. */
  #endings = 0;
  /**
   * The pause before the next attempt, which keeps the process running as an open connection does. It never ends where
   * this connection is closed.
   */
  #again: NodeJS.Timeout | undefined;

  constructor(endpoints: ClusterEndpoints) {
    super({ keyPrefix: endpoints.keyPrefix });
    this.#nodes = new ClusterNodes(endpoints, (error) => this.emit('node error', error));
  }

  /** The masters, in the order of their slots. */
  nodes(_role: 'master'): NodeRedisConnection[] {
    return this.#nodes.masters;
  }

  refreshSlotsCache(): void {
    this.#nodes.refreshSoon();
  }

  connect(): Promise<void> {
    return (this.#opening ??= this.#open());
  }

  /** Disconnects. Where it is told to connect again, the subscription is made anew, on another node maybe. */
  disconnect(reconnect = false): void {
    if (reconnect) {
      this.#subscription?.stream?.destroy();
      return;
    }
    this.status = 'end';
    clearTimeout(this.#again);
    const subscription = this.#subscription;
    this.#subscription = undefined;
    subscription?.disconnect();
    this.#nodes.close();
    this.emit('close');
  }

  /**
   * Publishes by another master than the one of the subscription, where there is another one: a message has to arrive,
   * whichever master it is sent by.
   */
  override publish(channel: string, message: string): Promise<unknown> {
    const elsewhere = this.#subscription && this.#nodes.otherThan(this.#subscription);
    return elsewhere ? elsewhere.publish(channel, message) : super.publish(channel, message);
  }

  /**
   * Subscribes. Where the connection of the subscription is lost, the next event `ready` asks for another subscription.
   */
  async subscribe(...channels: readonly string[]): Promise<unknown> {
    const node = this.#nodes.another();
    const before = this.#subscription;
    this.#subscription = node;
    before?.disconnect();
    node.on('message', (channel: string, message: string) => this.emit('message', channel, message));
    node.on('close', () => this.#subscriptionEnded(node));
    try {
      await node.connect();
    } catch (cause) {
      // The connection was refused; this is no refusal of the subscription.
      throw new Error(NO_CONNECTION, { cause });
    }
    const subscribed = await node.subscribe(...channels);
    this.#endings = 0;
    return subscribed;
  }

  async #open(): Promise<void> {
    this.status = 'connecting';
    for (let attempts = 1; !this.#isClosed; attempts++) {
      try {
        await this.#nodes.refresh();
        break;
      } catch (error) {
        this.emit('error', error);
        await new Promise<void>((resolve) => {
          this.#again = setTimeout(resolve, backOff(attempts));
        });
      }
    }
    if (!this.#isClosed) {
      this.status = 'ready';
      this.emit('connect');
      this.emit('ready');
    }
  }

  get #isClosed(): boolean {
    return this.status === 'end';
  }

  async send(words: Words): Promise<unknown> {
    const key = keyIn(words);
    let node = await this.#nodes.onceKnown(key);
    let asking = false;
    for (let redirections = 0; ; redirections++) {
      try {
        return await (asking ? askAndSend(node, words) : node.send(words));
      } catch (error) {
        const redirection = redirectionIn(error, node.host);
        if (redirections === MOST_REDIRECTIONS || !(redirection ?? mayPass(error))) {
          throw error;
        }
        if (!redirection) {
          // Another node may have the slot, and the asked node may not know.
          this.#nodes.refreshSoon();
          await sleep(AGAIN_MS);
        } else if (redirection.how === 'MOVED') {
          this.#nodes.moved(redirection.slot, redirection.address);
        }
        asking = redirection?.how === 'ASK';
        node = redirection ? this.#nodes.at(redirection.address) : this.#nodes.of(key);
      }
    }
  }

  /** To the node of the first key in them, or to any. */
  protected sendTogether(commands: readonly Words[]): readonly Promise<unknown>[] {
    const found = this.#nodes.onceKnown(commands.map(keyIn).find((key) => key !== undefined));
    return commands.map((words) => found.then((node) => node.send(words)));
  }

  #subscriptionEnded(node: NodeRedisConnection): void {
    if (this.#subscription !== node) {
      return;
    }
    this.#subscription = undefined;
    node.disconnect();
    this.emit('close');
    this.#again = setTimeout(() => void this.#subscribeAgain(), backOff(++this.#endings));
  }

  async #subscribeAgain(): Promise<void> {
    await this.#nodes.refresh().catch(() => undefined);
    if (!this.#isClosed) {
      this.emit('ready');
    }
  }
}

/** ASKING is for the command that comes next on the same connection. */
async function askAndSend(node: NodeRedisConnection, words: Words): Promise<unknown> {
  const [asked, reply] = await Promise.allSettled([node.send(['ASKING']), node.send(words)]);
  if (reply.status === 'fulfilled') {
    return reply.value;
  }
  throw asked.status === 'rejected' ? asked.reason : reply.reason;
}

/** Whether a command was not carried out for a reason that passes by itself, or with another node for its slot. */
function mayPass(error: unknown): boolean {
  const { name, message } = error as Error;
  return message === NO_CONNECTION || (name === 'ReplyError' && /^(TRYAGAIN|CLUSTERDOWN)\b/.test(message));
}
