import { lookup as systemLookup } from 'node:dns';
import { CommandTimeouts } from '../command-timeouts.js';
import type { Connection, Socket } from '../connection.js';
import { backOff } from '../handshake.js';
import { NO_CONNECTION } from '../redis-errors.js';
import { NodeRedisCommands, type Words } from './commands.js';
import { failureOf, refuse, withReplyErrors } from './errors.js';
import type { Lookup, Endpoint, OneConnection, SocketOptions } from './endpoint.js';

/** For how long a client that is closed waits for the commands that were sent, in milliseconds. */
const CLOSING_MS = 200;

/** The differences of a connection to a node of a cluster. */
export interface NodeOptions {
  /** The address by which the cluster knows the node. */
  readonly host?: string;
  readonly port?: number;
  /**
   * After how long without an answer the connection counts as half open, in milliseconds. Where it is not given, the
   * store watches for answers.
   */
  readonly silenceMs?: number;
}

/**
 * Connections by clients of node-redis, with the interface of ioredis. Each client makes one connection, and no other:
 * a command sent on a connection that broke is never sent again, nothing waits for the next connection, and no
 * subscription comes back by itself.
 */
export class NodeRedisConnection extends NodeRedisCommands implements Connection {
  readonly queuesForEver = true;
  readonly #endpoint: Endpoint;
  readonly #silenceMs: number | undefined;
  readonly #timeouts = new CommandTimeouts(() => this.stream?.destroy());
  #client: OneConnection | undefined;
  #sockets = new AbortController();
  /** The connecting of the client, which never rejects unhandled. */
  #attempt: Promise<void> = Promise.resolve();
  /** Rejects the attempt: a client that ends while it connects may leave its own promise open. */
  #refuse: (failure: Error) => void = () => undefined;
  #attempts = 0;
  #again: NodeJS.Timeout | undefined;
  #address = '';

  constructor(endpoint: Endpoint, { silenceMs, ...address }: NodeOptions = {}) {
    super({ db: endpoint.database, keyPrefix: endpoint.keyPrefix, ...address });
    this.#endpoint = endpoint;
    this.#silenceMs = silenceMs;
  }

  /** The socket; its address is the list of all addresses that the name of the server led to. */
  get stream(): Socket | null {
    const client = this.#client;
    const { host, port } = this.#socket;
    return client ? { remoteAddress: this.#address || host, remotePort: port, destroy: (reason) => this.#ended(client, reason) } : null;
  }

  /** The host that it connects to. */
  get host(): string {
    return this.#socket.host ?? 'localhost';
  }

  get #socket(): SocketOptions {
    return this.#client?.options?.socket ?? this.#endpoint.socket;
  }

  async connect(): Promise<void> {
    if (!this.#client && this.#again === undefined) {
      this.#connect();
    }
    await this.#attempt;
  }

  disconnect(): void {
    clearTimeout(this.#again);
    this.#again = undefined;
    this.status = 'end';
    const client = this.#client;
    this.#client = undefined;
    if (client) {
      closeSoon(client, this.#sockets);
      this.#refuse(new Error(NO_CONNECTION));
      this.emit('close');
    }
  }

  async subscribe(...channels: readonly string[]): Promise<unknown> {
    const client = await this.#ready();
    return client.subscribe(channels, (message, channel) => this.emit('message', channel, message)).catch(refuse);
  }

  send(words: Words): Promise<unknown> {
    const client = this.#client;
    return client?.isReady ? this.#sendOn(client, words) : this.#ready().then((ready) => this.#sendOn(ready, words));
  }

  protected sendTogether(commands: readonly Words[]): readonly Promise<unknown>[] {
    return commands.map((words) => this.send(words));
  }

  #sendOn(client: OneConnection, words: Words): Promise<unknown> {
    const reply = client.sendCommand(words).then(withReplyErrors, refuse);
    return this.#silenceMs === undefined ? reply : this.#timeouts.bound(reply, this.#silenceMs);
  }

  /** Commands wait for the first connection only; those to a node of a cluster for one that is being made. */
  async #ready(): Promise<OneConnection> {
    if (this.options.enableOfflineQueue === true) {
      // Why it failed is an event of its own. The command was not sent.
      await this.#attempt.catch(() => undefined);
    }
    if (this.#client?.isReady !== true) {
      throw new Error(NO_CONNECTION);
    }
    return this.#client;
  }

  #connect(): void {
    this.#again = undefined;
    const { host, path, lookup } = this.#endpoint.socket;
    this.#address = path ?? host ?? '';
    this.#sockets = new AbortController();
    const tell = (event: string): unknown => this.#client === client && this.emit(event);
    const sockets = this.#sockets;
    // A client that gives up while it is closed has to be destroyed too, or stays in lists of node-redis.
    const failed = (cause: Error): void => (this.#client === client ? this.#ended(client, cause) : destroy(client, sockets));
    const client = this.#endpoint.make(this.#watched(lookup), sockets.signal, failed, tell);
    this.#client = client;
    this.status = 'connecting';
    client.on('error', (error) => this.#ended(client, error));
    client.on('connect', () => tell('connect'));
    this.#attempt = new Promise((resolve, reject) => {
      this.#refuse = reject;
      client.connect().then(
        () => {
          this.#connected(client);
          resolve();
        },
        (error: Error) => this.#ended(client, error),
      );
    });
    this.#attempt.catch(() => undefined);
  }

  #connected(client: OneConnection): void {
    if (this.#client === client) {
      this.#attempts = 0;
      this.status = 'ready';
      this.emit('ready');
    }
  }

  /** Once for each client, which tells most errors twice. */
  #ended(client: OneConnection, reason?: Error): void {
    if (this.#client !== client) {
      return;
    }
    this.#client = undefined;
    this.status = 'reconnecting';
    // Before the listeners: one of them may close this connection. It keeps the process, as an open connection does.
    this.#again = setTimeout(() => this.#connect(), backOff(++this.#attempts));
    destroy(client, this.#sockets);
    const failure = reason && failureOf(reason);
    this.#refuse(failure ?? new Error(NO_CONNECTION));
    if (failure) {
      this.emit('error', failure);
    }
    this.emit('close');
  }

  /**
   * node-redis does not show where a connection leads, so the addresses of the server's name are noted when the name is
   * looked up.
   */
  #watched(lookup: Lookup = systemLookup as unknown as Lookup): Lookup {
    return (host, options, callback) =>
      lookup(host, options, (error, found, family) => {
        this.#address = JSON.stringify(Array.isArray(found) ? found.map((one: { address: string }) => one.address).toSorted() : found);
        callback(error, found, family);
      });
  }
}

/**
 * Closes once the commands that were given to the client are sent, such as a release at a shutdown: when a PING is
 * answered, all earlier answers have come.
 */
function closeSoon(client: OneConnection, sockets: AbortController): void {
  const end = (): void => {
    clearTimeout(late);
    destroy(client, sockets);
  };
  const late = setTimeout(end, CLOSING_MS).unref();
  if (client.isReady) {
    client.sendCommand(['PING']).then(end, end);
  } else {
    end();
  }
}

/** node-redis itself lets a socket that is being connected come to stand, and keeps it. */
function destroy(client: OneConnection, sockets: AbortController): void {
  try {
    client.destroy();
  } catch {
    // The client has ended by itself.
  }
  sockets.abort();
}
