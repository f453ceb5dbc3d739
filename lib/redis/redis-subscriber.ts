import { makeConnection, reconnect, type Connection, type RedisSource } from './redis-client.js';

const PING_MS = 5_000;

/** The connection that hears what other processes tell this one. Messages are hints: losing one delays, and breaks nothing. */
export class RedisSubscriber {
  readonly #channel: string;
  readonly #onMessage: (message: string) => void;
  readonly #onError: (error: Error) => void;
  #connection: Connection | undefined;
  #pings: NodeJS.Timeout | undefined;
  #answered = true;
  #closed = false;

  constructor(channel: string, onMessage: (message: string) => void, onError: (error: Error) => void) {
    this.#channel = channel;
    this.#onMessage = onMessage;
    this.#onError = onError;
  }

  async open(source: RedisSource): Promise<void> {
    // ioredis is ready before its own re-subscription is acknowledged, so the subscribing is done here.
    const connection = await makeConnection(source, { autoResubscribe: false, maxRetriesPerRequest: null });
    if (this.#closed) {
      return;
    }
    this.#connection = connection;
    connection.on('ready', () => {
      this.#answered = true;
      connection.subscribe(this.#channel).catch(this.#onError);
    });
    connection.on('message', (_channel: string, message: string) => this.#onMessage(message));
    // Its failures show on the connection for commands as well, which reports them.
    connection.on('error', () => undefined);
    connection.connect().catch(() => undefined);
    this.#pings = setInterval(() => this.#ping(connection), PING_MS).unref();
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#pings);
    this.#connection?.disconnect();
  }

  /** A half-open connection is silent for ever: one that did not answer the last ping is made anew. */
  #ping(connection: Connection): void {
    if (!this.#answered) {
      reconnect(connection);
      return;
    }
    this.#answered = false;
    connection.ping().then(
      () => {
        this.#answered = true;
      },
      () => undefined,
    );
  }
}
