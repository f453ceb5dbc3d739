import { RedisServer } from './redis-server';
import { TcpProxy } from './tcp-proxy';

const PLACES = [0, 1, 2, 3, 4] as const;

/** Five real and independent servers of the test's own, each behind a proxy. */
export class RedisQuorum {
  readonly servers: readonly RedisServer[];
  readonly proxies: readonly TcpProxy[];

  private constructor(servers: readonly RedisServer[], proxies: readonly TcpProxy[]) {
    this.servers = servers;
    this.proxies = proxies;
  }

  /** Of five servers, or so many, that were used before: no process has to find out whether they are new. */
  static async start(count: number = PLACES.length): Promise<RedisQuorum> {
    const quorum = await RedisQuorum.startNew(count);
    await quorum.markUsed();
    return quorum;
  }

  /** Of servers that were never used. */
  static async startNew(count: number = PLACES.length): Promise<RedisQuorum> {
    return RedisQuorum.of(await Promise.all(PLACES.slice(0, count).map(() => RedisServer.start())));
  }

  /** Of servers that were started already. */
  static async of(servers: readonly RedisServer[]): Promise<RedisQuorum> {
    return new RedisQuorum(servers, await proxiesOf(servers));
  }

  /** Has the servers remember that their votes count. */
  async markUsed(): Promise<void> {
    await Promise.all(
      this.servers.map(async ({ client }) => {
        const [, run = ''] = /^run_id:(\w+)/m.exec(await client.info('server')) ?? [];
        await client.hset('lock:run:{0}', { run, seen: 0, counts: 1, restarted: 0 });
      }),
    );
  }

  /** The servers themselves. */
  get urls(): string[] {
    return this.servers.map(({ url }) => url);
  }

  /** The URLs of the servers by way of the proxies. */
  get proxied(): string[] {
    return this.proxies.map(({ url }) => url);
  }

  at(place: number): RedisServer {
    return this.servers[place] as RedisServer;
  }

  proxy(place: number): TcpProxy {
    return this.proxies[place] as TcpProxy;
  }

  /** Further proxies, for a store that is to have its own faults. The caller stops them. */
  moreProxies(): Promise<TcpProxy[]> {
    return proxiesOf(this.servers);
  }

  /** The fence of a lock in each of the servers at these places, which have to run. */
  fences(key: string, places: readonly number[] = PLACES.slice(0, this.servers.length)): Promise<(string | null)[]> {
    return Promise.all(places.map((place) => this.at(place).client.hget(`lock:lock:{${key}}`, 'fence')));
  }

  async stop(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.stop()));
    await Promise.all(this.proxies.map((proxy) => proxy.stop()));
  }
}

function proxiesOf(servers: readonly RedisServer[]): Promise<TcpProxy[]> {
  return Promise.all(servers.map(({ port }) => TcpProxy.start(port)));
}
