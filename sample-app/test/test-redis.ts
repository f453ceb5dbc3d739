import { startRedisServer, type RedisServer } from '../src/demo/redis-server.js';

/** A Redis server for a test. */
export async function startTestRedis(): Promise<RedisServer> {
  const server = await startRedisServer();
  if (!server) {
    throw new Error('There is no redis-server on the PATH. Install it: apt-get install redis-server, or brew install redis.');
  }
  return server;
}
