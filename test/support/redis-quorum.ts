import { RedisServer } from './redis-server';

/** Five real and independent servers of the test's own. */
export class RedisQuorum {
  readonly servers: readonly RedisServer[];

  private constructor(servers: readonly RedisServer[]) {
    this.servers = servers;
  }

  static async start(...args: string[]): Promise<RedisQuorum> {
    return new RedisQuorum(await Promise.all(Array.from({ length: 5 }, () => RedisServer.start(...args))));
  }

  get urls(): string[] {
    return this.servers.map(({ url }) => url);
  }

  /** A server by its place. */
  at(place: number): RedisServer {
    const server = this.servers[place];
    if (!server) {
      throw new Error(`the quorum has no server at ${place}`);
    }
    return server;
  }

  /** The same question to each server that runs, by their places. */
  async each<T>(ask: (server: RedisServer) => Promise<T>): Promise<T[]> {
    return Promise.all(this.servers.map((server) => ask(server)));
  }

  async stop(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.stop()));
  }
}
