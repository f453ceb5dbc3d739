import { RedisLockStore } from '../../../lib/redis/redis-lock-store.js';
import { RedisCluster } from '../../support/redis-cluster.js';
import type { RedisServer } from '../../support/redis-server.js';
import { until } from '../../support/until.js';
import type { FaultName } from '../faults.js';
import type { Step } from '../plan.js';
import { proxyAll } from './proxies.js';
import { deleteLock, FAULTS_OF_REDIS, orphans, pingsOf, RELEASE_TEXT, RENEW_TEXT, withoutExpiry } from './redis-locks.js';
import { strikeServer } from './strike-server.js';
import type { Taken, Topology } from './topology.js';

async function roleOf({ client }: RedisServer): Promise<string> {
  return ((await client.call('ROLE')) as [string])[0];
}

/** Three masters and a replica of each, which confirms every grant. */
export class Cluster implements Topology {
  readonly faults: readonly FaultName[] = [...FAULTS_OF_REDIS, 'nest', 'failover', 'depose', 'reshard'];
  readonly spare = 0;
  readonly keepsOrder = true;
  readonly isShared = true;
  readonly releaseText = RELEASE_TEXT;
  readonly renewText = RENEW_TEXT;
  readonly #cluster: RedisCluster;
  readonly #client: ReturnType<RedisCluster['connect']>;

  private constructor(cluster: RedisCluster) {
    this.#cluster = cluster;
    this.#client = cluster.connect();
  }

  static async start(): Promise<Cluster> {
    return new Cluster(await RedisCluster.start());
  }

  async link(): ReturnType<Topology['link']> {
    const { proxies, natMap } = await proxyAll(this.#cluster.nodes);
    return { source: { kind: 'cluster', minReplicas: 1, ports: proxies.map(({ port }) => port), natMap }, proxies };
  }

  store(): RedisLockStore {
    return new RedisLockStore(this.#client);
  }

  async strike({ fault, ms, chance }: Step): Promise<void> {
    const masters = await this.#cluster.masters();
    const master = masters[Math.floor(chance * masters.length)] as RedisServer;
    if (fault === 'failover') {
      await this.#cluster.failover(master);
      await this.#cluster.restart(master);
    } else if (fault === 'depose') {
      const replicas = await this.#cluster.replicasOf(master);
      master.pause();
      try {
        await until('the promotion of a replica', async () => (await Promise.all(replicas.map(roleOf))).includes('master'));
      } finally {
        master.resume();
      }
      await this.#cluster.settled();
    } else if (fault === 'reshard') {
      const key = `{${['a', 'account 2', 'account 3'][Math.floor(chance * 3)]}}`;
      const to = masters.find((other) => other !== master) as RedisServer;
      await this.#cluster.reshard(key, to);
    } else {
      await strikeServer(master, fault, ms);
    }
  }

  async delete(key: string): Promise<Taken> {
    return deleteLock(await this.#cluster.masters(), key);
  }

  pings(): readonly (() => Promise<unknown>)[] {
    return pingsOf(this.#cluster.nodes);
  }

  async withoutExpiry(): Promise<string[]> {
    return withoutExpiry(await this.#cluster.masters());
  }

  async orphans(): Promise<string[]> {
    return orphans(await this.#cluster.masters());
  }

  async stop(): Promise<void> {
    this.#client.disconnect();
    await this.#cluster.stop();
  }
}
