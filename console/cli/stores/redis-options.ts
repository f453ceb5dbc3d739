import type { RedisConnectionOptions } from '../../../lib/redis/connection/redis-source.js';
import type { TlsFiles } from '../address/tls-files.js';

/** The options of ioredis for a URL, as it reads that itself, with the files of TLS. */
export function redisOptionsOf(url: string, tls: TlsFiles | undefined): RedisConnectionOptions {
  const { protocol, hostname, port, username, password, pathname, searchParams } = new URL(url);
  const query = [...searchParams].map(([name, value]) => [name, name === 'family' ? Number(value) : value] as const);
  return {
    ...Object.fromEntries(query),
    host: hostname.replaceAll(/^\[|\]$/g, '') || 'localhost',
    port: Number(port || 6_379),
    username: decodeURIComponent(username) || undefined,
    password: decodeURIComponent(password) || undefined,
    db: Number(pathname.slice(1)),
    ...(protocol === 'rediss:' ? { tls: { ...tls } } : {}),
  };
}
