import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/**
 * What the proxy does with traffic. Requests always go through but for `blackhole`, which swallows both directions. TCP
 * never goes on after a gap, so a connection that lost a byte stays half open for good; new ones are whole.
 * `muteSubscribers` keeps from subscribers what they would hear, and lets everybody else's replies pass.
 */
export type ProxyMode = 'pass' | 'dropReplies' | 'killOnReply' | 'blackhole' | 'muteSubscribers';

/** Stands between a client and a server, and breaks what passes. */
export class TcpProxy {
  mode: ProxyMode = 'pass';
  /** Added to every reply. */
  latencyMs = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #deaf = new WeakSet<Socket>();
  readonly #mute = new WeakSet<Socket>();
  readonly #subscribers = new WeakSet<Socket>();

  private constructor(target: number) {
    this.#server = createServer((client) => {
      const upstream = connect(target, '127.0.0.1');
      this.#track(client, upstream);
      this.#track(upstream, client);
      client.on('data', (data) => {
        if (data.includes('subscribe')) {
          this.#subscribers.add(client);
        }
        if (this.mode === 'blackhole') {
          this.#deaf.add(client);
        } else if (!this.#deaf.has(client)) {
          upstream.write(data);
        }
      });
      upstream.on('data', (data) => this.#reply(data, client, upstream));
    });
  }

  static async start(target: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(target);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get url(): string {
    return `redis://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.close();
    this.cut();
    await once(this.#server, 'close');
  }

  cut(): void {
    for (const socket of this.#sockets) {
      socket.destroy();
    }
  }

  #track(socket: Socket, other: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.#sockets.delete(socket);
      other.destroy();
    });
  }

  #reply(data: Buffer, client: Socket, upstream: Socket): void {
    if (this.mode === 'killOnReply') {
      upstream.destroy();
      client.destroy();
    } else if (this.mode !== 'pass' && (this.mode !== 'muteSubscribers' || this.#subscribers.has(client))) {
      this.#mute.add(client);
    } else if (!this.#mute.has(client) && !this.#deaf.has(client)) {
      setTimeout(() => client.writable && client.write(data), this.latencyMs);
    }
  }
}
