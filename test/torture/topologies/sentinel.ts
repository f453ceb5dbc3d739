import { RedisLockStore } from '../../../lib/redis/redis-lock-store.js';
import { SentinelGroup } from '../../support/redis-sentinel.js';
import type { RedisServer } from '../../support/redis-server.js';
import type { FaultName } from '../faults.js';
import type { Step } from '../plan.js';
import { proxyAll } from './proxies.js';
import { strikeServer } from './strike-server.js';
import { FAULTS_ANYWHERE, type Topology } from './topology.js';

/** A master, two replicas, which both confirm every grant, and three sentinels. */
export class Sentinel implements Topology {
  readonly faults: readonly FaultName[] = [...FAULTS_ANYWHERE, 'failover', 'depose'];
  readonly minReplicas = 2;
  readonly #group: SentinelGroup;
  readonly #client: ReturnType<SentinelGroup['connect']>;

  private constructor(group: SentinelGroup) {
    this.#group = group;
    this.#client = group.connect();
  }

  static async start(): Promise<Sentinel> {
    return new Sentinel(await SentinelGroup.start());
  }

  async link(): ReturnType<Topology['link']> {
    const { proxies, natMap } = await proxyAll(this.#group.servers);
    return { source: { kind: 'sentinel', ports: this.#group.sentinelPorts, natMap }, proxies };
  }

  store(): RedisLockStore {
    return new RedisLockStore(this.#client);
  }

  async strike({ fault, ms }: Step): Promise<void> {
    const master = await this.#group.master();
    if (fault === 'failover' || fault === 'depose') {
      await this.#group.failover(fault === 'failover' ? 'kill' : 'pause');
      if (fault === 'failover') {
        await master.start();
      } else {
        master.resume();
      }
      await this.#group.waitForReplica(master);
    } else {
      await strikeServer(master, fault, ms);
    }
  }

  async masters(): Promise<readonly RedisServer[]> {
    return [await this.#group.master()];
  }

  async stop(): Promise<void> {
    this.#client.disconnect();
    await this.#group.stop();
  }
}
