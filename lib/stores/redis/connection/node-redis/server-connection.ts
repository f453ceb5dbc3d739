import { lookup as systemLookup } from 'node:dns';
import { EventEmitter } from 'node:events';
import type { Argument } from '../../scripts/script.js';
import { CommandTimeouts } from '../command-timeouts.js';
import type { Connection, Pipeline, Socket } from '../connection.js';
import { failureOf, refuse, withReplyErrors } from './errors.js';
import { NodeRedisPipeline, scriptWords } from './pipeline.js';
import type { Lookup, NodeRedisWay, OneConnection } from './way.js';
import { NO_CONNECTION } from '../redis-errors.js';

/** For how long a client that is closed waits for what was sent, in milliseconds. */
const CLOSING_MS = 200;

/** What differs where the connection is one to a node of a cluster. */
export interface NodeOptions {
  /** The address by which the cluster knows the node. */
  readonly host?: string;
  readonly port?: number;
  /** After how long without an answer the connection counts as half open, in milliseconds. Where it is not given, the store watches that. */
  readonly silenceMs?: number;
}

/**
 * Connections by clients of node-redis, with the interface of ioredis. Each client makes one connection, and no other: what was sent on a
 * connection that broke is never sent again, nothing waits for the next one, and no subscription comes back by itself.
 */
export class NodeRedisConnection implements Connection {
  status = 'wait';
  readonly queuesForEver = true;
  readonly options: Connection['options'];
  readonly #events = new EventEmitter();
  readonly #way: NodeRedisWay;
  readonly #backOff: (attempts: number) => number;
  readonly #silenceMs: number | undefined;
  readonly #timeouts = new CommandTimeouts(() => this.stream?.destroy());
  #client: OneConnection | undefined;
  #sockets = new AbortController();
  /** The connecting of the client, which never rejects unhandled. */
  #attempt: Promise<void> = Promise.resolve();
  #attempts = 0;
  #again: NodeJS.Timeout | undefined;
  #address = '';
  #closed = false;

  constructor(way: NodeRedisWay, backOff: (attempts: number) => number, { silenceMs, ...address }: NodeOptions = {}) {
    this.#way = way;
    this.#backOff = backOff;
    this.#silenceMs = silenceMs;
    this.options = { enableOfflineQueue: true, keyPrefix: way.keyPrefix, ...address };
  }

  /** Its address is all that the name of the server led to. */
  get stream(): Socket | null {
    const client = this.#client;
    const { host, port } = client?.options?.socket ?? this.#way.socket;
    return client ? { remoteAddress: this.#address || host, remotePort: port, destroy: (reason) => this.#ended(client, reason) } : null;
  }

  /** The host that it connects to. */
  get host(): string | undefined {
    return this.#client?.options?.socket?.host ?? this.options.host;
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
      closeSoon(client, this.#sockets);
      this.#events.emit('close');
    }
  }

  evalsha(sha: string, ...parameters: readonly Argument[]): Promise<unknown> {
    return this.send(scriptWords('evalsha', sha, parameters, this.#way.keyPrefix));
  }

  eval(source: string, ...parameters: readonly Argument[]): Promise<unknown> {
    return this.send(scriptWords('eval', source, parameters, this.#way.keyPrefix));
  }

  pipeline(): Pipeline {
    return new NodeRedisPipeline(() => (words) => this.send(words), this.#way.keyPrefix);
  }

  call(command: string, ...words: readonly Argument[]): Promise<unknown> {
    return this.send([command, ...words.map(String)]);
  }

  async info(): Promise<string> {
    return String(await this.send(['INFO']));
  }

  time(): Promise<unknown> {
    return this.send(['TIME']);
  }

  ping(): Promise<unknown> {
    return this.send(['PING']);
  }

  publish(channel: string, message: string): Promise<unknown> {
    return this.send(['PUBLISH', channel, message]);
  }

  scan(cursor: string, ...parameters: readonly Argument[]): Promise<unknown> {
    return this.send(['SCAN', cursor, ...parameters.map(String)]);
  }

  async subscribe(...channels: readonly string[]): Promise<unknown> {
    const client = await this.#ready();
    return client.subscribe(channels, (message, channel) => this.#events.emit('message', channel, message)).catch(refuse);
  }

  /** Sends a command as it is, without a prefix. */
  send(words: readonly string[]): Promise<unknown> {
    const client = this.#client;
    return client?.isReady ? this.#sendOn(client, words) : this.#ready().then((ready) => this.#sendOn(ready, words));
  }

  #sendOn(client: OneConnection, words: readonly string[]): Promise<unknown> {
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
    const { host, path, lookup } = this.#way.socket;
    this.#address = path ?? host ?? '';
    this.#sockets = new AbortController();
    const client = this.#way.make(this.#watched(lookup), this.#sockets.signal);
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
    destroy(client, this.#sockets);
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
    // It has ended by itself.
  }
  sockets.abort();
}
