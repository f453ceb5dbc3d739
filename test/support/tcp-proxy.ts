import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { until } from './until';

/**
 * The treatment of traffic by the proxy. Requests always go through but for `blackhole`, which swallows both
 * directions. TCP never goes on after a gap, so a connection that lost a byte stays half open for good; new ones are
 * whole. `muteSubscribers` keeps messages from subscribers, and lets everybody else's replies pass; `deafen` cuts
 * subscribers off; `refuse` cuts everybody off; `withhold` keeps requests, and the connection to the server, until
 * `deliverFirst`.
 */
export type ProxyMode = 'pass' | 'withhold' | 'dropReplies' | 'killOnReply' | 'blackhole' | 'muteSubscribers' | 'deafen' | 'refuse';

/**
 * The commands by which a subscriber subscribes to Redis and to PostgreSQL, and the statement on which a process sleeps
 * in MySQL.
 */
const SUBSCRIBES = ['subscribe', 'SUBSCRIBE', 'LISTEN ', 'ELSE get_lock('];

/** Reads a connection, and knows the text of a request that does not have it in itself. */
export interface TextReader {
  textOf(request: Buffer): string;
  read(reply: Buffer): void;
}

const SILENT: ReadonlySet<ProxyMode> = new Set(['dropReplies', 'blackhole']);

/** Stands between a client and a server, and breaks what passes. */
export class TcpProxy {
  /** Added to every reply. */
  latencyMs = 0;
  /** Added to every reply to a command, and not to what a subscriber hears. */
  commandLatencyMs = 0;
  /** The connection is cut on the reply to a request with this text, or one of these. */
  ambush: string | readonly string[] | undefined;
  /** Is told of each connection that was cut so. */
  onAmbush: (() => void) | undefined;
  /** Whether clients are not told that the server has closed a connection, as where its machine is gone. */
  isSilent = false;
  /** The port where new connections lead; those that stand stay where they are. */
  target: number;
  #mode: ProxyMode = 'pass';
  #withheld: { readonly upstream: Socket; readonly data: Buffer } | undefined;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #deaf = new WeakSet<Socket>();
  readonly #mute = new WeakSet<Socket>();
  readonly #subscribers = new WeakSet<Socket>();
  readonly #ambushed = new WeakSet<Socket>();
  /** Replies that are late, by connection. */
  readonly #waiting = new WeakMap<Socket, { readonly at: number; readonly data: Buffer }[]>();

  private constructor(target: number, newReader?: () => TextReader) {
    this.target = target;
    this.#server = createServer({ noDelay: true }, (client) => {
      const reader = newReader?.();
      if (this.#mode === 'refuse') {
        client.destroy();
        return;
      }
      // Servers and clients send without delay: behind a proxy that does not, each reply in two parts takes 40 ms.
      const upstream = connect({ port: this.target, host: '127.0.0.1', noDelay: true });
      this.#track(client, upstream, upstream);
      this.#track(upstream, client, upstream);
      client.on('data', (data) => {
        if (SUBSCRIBES.some((word) => data.includes(word))) {
          this.#subscribers.add(client);
        }
        const request = reader?.textOf(data) ?? data;
        if ([this.ambush ?? []].flat().some((text) => request.includes(text))) {
          this.#ambushed.add(client);
        }
        if (this.#mode === 'deafen' && this.#subscribers.has(client)) {
          client.destroy();
        } else if (this.#mode === 'blackhole') {
          this.#deaf.add(client);
        } else if (this.#mode === 'withhold') {
          this.#deaf.add(client);
          this.#withheld ??= { upstream, data };
        } else if (!this.#deaf.has(client)) {
          upstream.write(data);
        }
      });
      upstream.on('data', (data) => {
        reader?.read(data);
        this.#reply(data, client, upstream);
      });
    });
  }

  static async start(target: number, newReader?: () => TextReader): Promise<TcpProxy> {
    const proxy = new TcpProxy(target, newReader);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  get mode(): ProxyMode {
    return this.#mode;
  }

  set mode(mode: ProxyMode) {
    this.#mode = mode;
    for (const socket of this.#sockets) {
      if (socket !== this.#withheld?.upstream && (mode === 'refuse' || (mode === 'deafen' && this.#subscribers.has(socket)))) {
        socket.destroy();
      }
    }
  }

  /** Whether a request was withheld. */
  get withholds(): boolean {
    return this.#withheld !== undefined;
  }

  /** The first request that was withheld reaches the server, whoever still waits for its reply. */
  async deliverFirst(): Promise<void> {
    // Its client may have given up before the proxy has read it.
    await until('a request is withheld', () => this.withholds);
    const { upstream, data } = this.#withheld as { readonly upstream: Socket; readonly data: Buffer };
    upstream.write(data);
    await once(upstream, 'data');
    // Not before: the end of its client, which may come late, would end it too.
    this.#withheld = undefined;
    upstream.destroy();
  }

  async stop(): Promise<void> {
    this.#withheld?.upstream.destroy();
    this.#server.close();
    this.cut();
    await once(this.#server, 'close');
  }

  cut(): void {
    for (const socket of this.#sockets) {
      socket.destroy();
    }
  }

  cutSubscribers(): void {
    for (const socket of this.#sockets) {
      if (this.#subscribers.has(socket)) {
        socket.destroy();
      }
    }
  }

  #track(socket: Socket, other: Socket, upstream: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.#sockets.delete(socket);
      if (other !== this.#withheld?.upstream && !(this.isSilent && socket === upstream)) {
        other.destroy();
      }
    });
  }

  #reply(data: Buffer, client: Socket, upstream: Socket): void {
    if (this.#mode === 'killOnReply' || this.#ambushed.has(client)) {
      if (this.#ambushed.delete(client)) {
        this.onAmbush?.();
      }
      upstream.destroy();
      client.destroy();
    } else if (SILENT.has(this.#mode) || (this.#mode === 'muteSubscribers' && this.#subscribers.has(client))) {
      this.#mute.add(client);
    } else if (!this.#mute.has(client) && !this.#deaf.has(client)) {
      this.#delay(data, client);
    }
  }

  /** Bytes stay in their order, also where the latency changes. */
  #delay(data: Buffer, client: Socket): void {
    const waiting = this.#waiting.get(client) ?? [];
    this.#waiting.set(client, waiting);
    const latencyMs = this.latencyMs + (this.#subscribers.has(client) ? 0 : this.commandLatencyMs);
    const at = Math.max(performance.now() + latencyMs, waiting.at(-1)?.at ?? 0);
    waiting.push({ at, data });
    setTimeout(() => {
      while (waiting[0] && waiting[0].at <= at) {
        const { data: next } = waiting.shift() as { data: Buffer };
        if (client.writable) {
          client.write(next);
        }
      }
    }, at - performance.now());
  }
}
