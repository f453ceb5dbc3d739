import { RedisLockStore } from '../../../lib/redis/redis-lock-store';
import type { RedisLockStoreOptions } from '../../../lib/redis/redis-lock-store.options';
import { SentinelGroup } from '../../support/redis-sentinel';
import type { Faults, World } from './fault';
import { fill } from './redis';

async function group(strike: (servers: SentinelGroup) => unknown, options: RedisLockStoreOptions = {}): Promise<World> {
  const servers = await SentinelGroup.start();
  const client = servers.connect();
  return {
    connect: () => new RedisLockStore(client, options),
    address: { LOCKS_REDIS: (await servers.master()).url },
    strike: () => strike(servers),
    stop: () => {
      client.disconnect();
      return servers.stop();
    },
  };
}

export const SENTINEL: Faults = {
  'memory full': () => group(async (servers) => fill(await servers.master())),
  'master gone': () => group((servers) => servers.failover('kill')),
  'master hangs': () => group((servers) => servers.failover('pause')),
  'all gone': () => group(({ servers }) => Promise.all(servers.map((server) => server.kill()))),
  'replicas lost': () => group(async (servers) => (await servers.replicas()).map((replica) => replica.pause()), { minReplicas: 1 }),
};
