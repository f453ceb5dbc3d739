import { lookup as systemLookup } from 'node:dns';
import { EventEmitter } from 'node:events';
import type { Argument } from '../scripts/script.js';
import type { Connection, Pipeline, Socket } from './connection.js';
import { failureOf, refuse, withReplyErrors } from './node-redis-errors.js';
import { NodeRedisPipeline } from './node-redis-pipeline.js';
import { NO_CONNECTION } from './redis-errors.js';
import type { NodeRedisClient } from './redis-source.js';

/** What is used of a duplicate. */
interface OneConnection {
  readonly isReady: boolean;
  connect(): Promise<unknown>;
  destroy(): void;
  sendCommand(words: readonly string[]): Promise<unknown>;
  subscribe(channels: readonly string[], listener: (message: string, channel: string) => void): Promise<unknown>;
  on(event: string, listener: (error: Error) => void): unknown;
}

type Lookup = (host: string, options: object, callback: (error: Error | null, found: unknown, family?: unknown) => void) => void;

interface SocketOptions {
  readonly host?: string;
  readonly port?: number;
  readonly path?: string;
  readonly lookup?: Lookup;
}

/** For how long a client that is closed waits for what was sent, in milliseconds. */
const CLOSING_MS = 200;

/**
 * Connections by duplicates of a client of node-redis, with the interface of ioredis. Each duplicate makes one connection, and no other: what
 * was sent on a connection that broke is never sent again, nothing waits for the next one, and no subscription comes back by itself.
 */
export class NodeRedisConnection implements Connection {
  status = 'wait';
  readonly queuesForEver = true;
  readonly options: Connection['options'] = { enableOfflineQueue: true };
  readonly #events = new EventEmitter();
  readonly #source: NodeRedisClient;
  readonly #backOff: (attempts: number) => number;
  #client: OneConnection | undefined;
  /** The connecting of the client, which never rejects unhandled. */
  #attempt: Promise<void> = Promise.resolve();
  #attempts = 0;
  #again: NodeJS.Timeout | undefined;
  #address = '';
  #closed = false;

  constructor(source: NodeRedisClient, backOff: (attempts: number) => number) {
    this.#source = source;
    this.#backOff = backOff;
  }

  /** Its address is all that the name of the server led to. */
  get stream(): Socket | null {
    const client = this.#client;
    return client
      ? { remoteAddress: this.#address, remotePort: this.#socket.port, destroy: (reason) => this.#ended(client, reason) }
      : null;
  }

  on(event: string, listener: (...args: never[]) => void): void {
    this.#events.on(event, listener as (...args: unknown[]) => void);
  }

  async connect(): Promise<void> {
    if (!this.#client && this.#again === undefined) {
      this.#closed = false;
      this.#connect();
    }
    await this.#attempt;
  }

  disconnect(): void {
    this.#closed = true;
    clearTimeout(this.#again);
    this.#again = undefined;
    this.status = 'end';
    const client = this.#client;
    this.#client = undefined;
    if (client) {
      closeSoon(client);
      this.#events.emit('close');
    }
  }

  evalsha(sha: string, ...parameters: readonly Argument[]): Promise<unknown> {
    return this.#send(['evalsha', sha, ...parameters.map(String)]);
  }

  eval(source: string, ...parameters: readonly Argument[]): Promise<unknown> {
    return this.#send(['eval', source, ...parameters.map(String)]);
  }

  pipeline(): Pipeline {
    return new NodeRedisPipeline((words) => this.#send(words));
  }

  call(command: string, ...words: readonly Argument[]): Promise<unknown> {
    return this.#send([command, ...words.map(String)]);
  }

  async info(): Promise<string> {
    return String(await this.#send(['INFO']));
  }

  time(): Promise<unknown> {
    return this.#send(['TIME']);
  }

  ping(): Promise<unknown> {
    return this.#send(['PING']);
  }

  publish(channel: string, message: string): Promise<unknown> {
    return this.#send(['PUBLISH', channel, message]);
  }

  scan(cursor: string, ...parameters: readonly Argument[]): Promise<unknown> {
    return this.#send(['SCAN', cursor, ...parameters.map(String)]);
  }

  async subscribe(...channels: readonly string[]): Promise<unknown> {
    const client = await this.#ready();
    return client.subscribe(channels, (message, channel) => this.#events.emit('message', channel, message)).catch(refuse);
  }

  get #socket(): SocketOptions {
    return (this.#source as { readonly options?: { readonly socket?: SocketOptions } }).options?.socket ?? {};
  }

  #send(words: readonly string[]): Promise<unknown> {
    const client = this.#client;
    return client?.isReady
      ? client.sendCommand(words).then(withReplyErrors, refuse)
      : this.#ready().then((ready) => ready.sendCommand(words).then(withReplyErrors, refuse));
  }

  /** Commands wait for the first connection only. */
  async #ready(): Promise<OneConnection> {
    if (this.options.enableOfflineQueue === true) {
      await this.#attempt;
    }
    if (this.#client?.isReady !== true) {
      throw new Error(NO_CONNECTION);
    }
    return this.#client;
  }

  #connect(): void {
    this.#again = undefined;
    const { host, path, lookup } = this.#socket;
    this.#address = path ?? host ?? '';
    const duplicate = this.#source.duplicate.bind(this.#source) as (overrides: object) => OneConnection;
    const client = duplicate({
      RESP: 2,
      commandOptions: undefined,
      commandsQueueMaxLength: undefined,
      disableOfflineQueue: true,
      clientSideCache: undefined,
      emitInvalidate: false,
      maintNotifications: 'disabled',
      pingInterval: undefined,
      socket: { ...this.#socket, reconnectStrategy: false, socketTimeout: undefined, lookup: this.#watched(lookup) },
    });
    this.#client = client;
    this.status = 'connecting';
    client.on('error', (error) => this.#ended(client, error));
    client.on('connect', () => this.#client === client && this.#events.emit('connect'));
    this.#attempt = client.connect().then(
      () => this.#connected(client),
      (error: Error) => {
        this.#ended(client, error);
        throw failureOf(error);
      },
    );
    this.#attempt.catch(() => undefined);
  }

  #connected(client: OneConnection): void {
    if (this.#client === client) {
      this.#attempts = 0;
      this.status = 'ready';
      this.#events.emit('ready');
    }
  }

  /** Once for each client, which tells most errors twice. */
  #ended(client: OneConnection, reason?: Error): void {
    if (this.#client !== client) {
      return;
    }
    this.#client = undefined;
    this.status = 'reconnecting';
    destroy(client);
    if (reason) {
      this.#events.emit('error', failureOf(reason));
    }
    this.#events.emit('close');
    if (!this.#closed) {
      this.#again = setTimeout(() => this.#connect(), this.#backOff(++this.#attempts)).unref();
    }
  }

  /** node-redis does not show where a connection leads, so what the name of the server means is noted when it is looked up. */
  #watched(lookup: Lookup = systemLookup as unknown as Lookup): Lookup {
    return (host, options, callback) =>
      lookup(host, options, (error, found, family) => {
        this.#address = JSON.stringify(Array.isArray(found) ? found.map((one: { address: string }) => one.address).toSorted() : found);
        callback(error, found, family);
      });
  }
}

/** What was given to the client is still sent, as a release is at a shutdown: before the answer to a PING all others have come. */
function closeSoon(client: OneConnection): void {
  const end = (): void => {
    clearTimeout(late);
    destroy(client);
  };
  const late = setTimeout(end, CLOSING_MS).unref();
  if (client.isReady) {
    client.sendCommand(['PING']).then(end, end);
  } else {
    end();
  }
}

function destroy(client: OneConnection): void {
  try {
    client.destroy();
  } catch {
    // It has ended by itself.
  }
}
