import type { Listeners } from '../../kit/listeners.js';
import { channelOfDatabase, type Connection } from './connection.js';
import { reconnect } from './handshake.js';
import { isPassing } from './redis-errors.js';
import { addressOf, keepConnected, makeConnection } from './redis-client.js';
import type { RedisOrigin } from './redis-source.js';

const PING_MS = 5_000;

/**
 * The connection that receives the messages of other processes to this one. Messages are hints: a lost message delays,
 * and breaks nothing.
 */
export class RedisSubscriber {
  readonly #channels: readonly [string, string];
  readonly #listeners: Pick<Listeners, 'receive' | 'recheck'>;
  readonly #onRefusal: (error: Error) => void;
  #connection: Connection | undefined;
  #pings: NodeJS.Timeout | undefined;
  #answered = true;
  /** Whether messages reach this process, as far as it knows. A field, since each acquire reads it. */
  acknowledged = false;
  /** Whether the server refused the subscription: as the user may not subscribe, or for a while. */
  #isRefused = false;
  #isReported = false;
  /** When the subscription last changed its state. */
  #changedAt = 0;
  /** The server that commands have come to, until the subscription has followed them there. */
  #toFollow = '';
  #closed = false;

  /**
   * `channels`: the channel of this process alone, and the channel of all processes, of which those in the same
   * database hear each other. `onRefusal` is called where the server refuses the subscription.
   */
  constructor(channels: readonly [string, string], listeners: Pick<Listeners, 'receive' | 'recheck'>, onRefusal: (error: Error) => void) {
    this.#channels = channels;
    this.#listeners = listeners;
    this.#onRefusal = onRefusal;
  }

  async open(origin: RedisOrigin): Promise<void> {
    // ioredis is ready before its own re-subscription is acknowledged, so the subscribing is done here.
    const connection = await makeConnection(origin, { autoResubscribe: false, maxRetriesPerRequest: null });
    if (this.#closed) {
      return;
    }
    this.#connection = connection;
    connection.on('ready', () => {
      this.#answered = true;
      this.#subscribe(connection);
    });
    connection.on('close', () => this.#change(false));
    connection.on('message', (_channel: string, message: string) => {
      this.#answered = true;
      this.#listeners.receive(message);
    });
    // Failures of this connection show on the connection for commands as well, which reports them.
    connection.on('error', () => undefined);
    keepConnected(connection, () => this.#closed);
    this.#pings = setInterval(() => this.#ping(connection), PING_MS).unref();
  }

  /**
   * A message did not come: the subscription may be half open, or stand on another server. A new subscription is
   * trusted for a while, since the message may have been sent before it stood.
   */
  distrust(): void {
    if (this.acknowledged && this.#connection && performance.now() - this.#changedAt > PING_MS) {
      this.#change(false);
      resubscribe(this.#connection);
    }
  }

  /**
   * Commands have come to a server, such as a new master: messages that are published there do not reach another
   * server. A subscription that is on its way follows once it stands.
   */
  follow(address: string): void {
    this.#toFollow = address;
    if (this.acknowledged && this.#connection) {
      this.#follow(this.#connection);
    }
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#pings);
    this.#connection?.disconnect();
  }

  #subscribe(connection: Connection): void {
    const [own, everybody] = this.#channels;
    connection.subscribe(own, channelOfDatabase(connection, everybody)).then(
      () => {
        this.#answered = true;
        this.#isRefused = false;
        this.#isReported = false;
        this.#change(true);
        this.#follow(connection);
      },
      (error: Error) => this.#refused(error),
    );
  }

  /** Once for each server that commands come to: the name of a server may lead to several. */
  #follow(connection: Connection): void {
    const address = this.#toFollow;
    this.#toFollow = '';
    if (address !== '' && addressOf(connection) !== address) {
      this.#change(false);
      resubscribe(connection);
    }
  }

  /**
   * Any error but an error reply means that the connection broke. A refusal is reported once, until the subscription is
   * granted: it is asked for again and again.
   */
  #refused(error: Error): void {
    if (error.name === 'ReplyError') {
      this.#answered = true;
      this.#isRefused = true;
      if (!this.#isReported && !isPassing(error)) {
        this.#isReported = true;
        this.#onRefusal(error);
      }
    }
  }

  #change(acknowledged: boolean): void {
    if (this.acknowledged !== acknowledged && !this.#closed) {
      this.acknowledged = acknowledged;
      this.#changedAt = performance.now();
      // Messages may have been missed.
      this.#listeners.recheck();
    }
  }

  /** A half-open connection is silent for ever: one that did not answer the last PING is made anew. */
  #ping(connection: Connection): void {
    if (!this.#answered) {
      resubscribe(connection);
      return;
    }
    this.#answered = false;
    if (this.#isRefused) {
      // The subscription may be granted by now, or the reason has passed.
      this.#subscribe(connection);
    } else if (connection.isCluster) {
      // ioredis sends PING to any node, and does not watch the node where it subscribed. So a message to the process
      // itself has to arrive.
      connection.publish(this.#channels[0], 'ping').catch(() => {
        this.#answered = true;
      });
    } else {
      connection.call('ping').then(
        () => {
          this.#answered = true;
        },
        (error: Error) => {
          // A user without +ping is refused, which is an answer too.
          this.#answered ||= error.name === 'ReplyError';
        },
      );
    }
  }
}

/**
 * A cluster client does not show which of its connections has subscribed, so all of them are made anew. Not while the
 * client connects by itself: if it is told to disconnect while it looks up a name, it never connects again.
 */
function resubscribe(connection: Connection): void {
  if (connection.isCluster) {
    if (connection.status === 'ready') {
      connection.disconnect(true);
    }
  } else {
    reconnect(connection);
  }
}
