import type { RedisServer } from '../../support/redis-server.js';
import { TcpProxy } from '../../support/tcp-proxy.js';

/** A proxy for each server, and the table by which ioredis takes them for the servers. */
export async function proxyAll(servers: readonly RedisServer[]): Promise<{
  readonly proxies: readonly TcpProxy[];
  readonly natMap: Readonly<Record<string, { host: string; port: number }>>;
}> {
  const proxies = await Promise.all(servers.map(({ port }) => TcpProxy.start(port)));
  const entries = proxies.map((proxy, at) => [`127.0.0.1:${servers[at]?.port}`, { host: '127.0.0.1', port: proxy.port }] as const);
  return { proxies, natMap: Object.fromEntries(entries) };
}
