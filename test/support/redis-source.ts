import { createClient } from 'redis';
import { createClient as createClient6 } from 'redis-6';
import type { RedisSource } from '../../lib/stores/redis/connection/redis-source';

/** The client packages that `TEST_REDIS_CLIENT` names; without it, ioredis. */
const SOURCES: Readonly<Record<string, (url: string) => RedisSource>> = {
  ioredis: (url) => url,
  'node-redis': (url) => createClient({ url }),
  'node-redis-6': (url) => createClient6({ url }),
};

/** Where a store is to connect, by the client package that the suite is run with. */
export function sourceOf(url: string): RedisSource {
  const { TEST_REDIS_CLIENT: name = 'ioredis' } = process.env;
  const source = SOURCES[name];
  if (!source) {
    throw new Error(`TEST_REDIS_CLIENT is ${name}. Use ${Object.keys(SOURCES).join(', ')}.`);
  }
  return source(url);
}
