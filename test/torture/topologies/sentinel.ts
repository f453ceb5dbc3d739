import { setTimeout as sleep } from 'node:timers/promises';
import { RedisLockStore } from '../../../lib/redis/redis-lock-store.js';
import { SentinelGroup } from '../../support/redis-sentinel.js';
import type { RedisServer } from '../../support/redis-server.js';
import type { FaultName } from '../faults.js';
import type { Step } from '../plan.js';
import { proxyAll } from './proxies.js';
import { deleteLock, FAULTS_OF_REDIS, orphans, pingsOf, RELEASE_TEXT, RENEW_TEXT, withoutExpiry } from './redis-locks.js';
import { strikeServer } from './strike-server.js';
import type { Taken, Topology } from './topology.js';

/**
 * For how long a master goes on without its replicas, in milliseconds: its clients write, and no sentinel finds that
 * they are gone.
 */
const ISOLATED_MS = 400;

/** How long a machine that has much else to do may take until another server is the master, in milliseconds. */
const TAKEOVER_MS = 60_000;

/** A master, two replicas, which both confirm every grant, and three sentinels. */
export class Sentinel implements Topology {
  readonly faults: readonly FaultName[] = [...FAULTS_OF_REDIS, 'nest', 'failover', 'depose', 'isolate'];
  readonly spare = 0;
  readonly keepsOrder = true;
  readonly isShared = true;
  readonly releaseText = RELEASE_TEXT;
  readonly renewText = RENEW_TEXT;
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
    return { source: { kind: 'sentinel', minReplicas: 2, ports: this.#group.sentinelPorts, natMap }, proxies };
  }

  store(): RedisLockStore {
    return new RedisLockStore(this.#client);
  }

  async strike({ fault, ms }: Step): Promise<void> {
    const master = await this.#group.master();
    if (fault === 'isolate') {
      await isolate(master);
    }
    if (fault === 'failover' || fault === 'depose' || fault === 'isolate') {
      await this.#takeOver(master, fault === 'depose' ? 'pause' : 'kill');
    } else {
      await strikeServer(master, fault, ms);
    }
  }

  async #takeOver(master: RedisServer, how: 'pause' | 'kill'): Promise<void> {
    try {
      await this.#group.failover(how, TAKEOVER_MS);
      if (how === 'pause') {
        master.resume();
      } else {
        await master.start();
      }
      await this.#group.waitForReplica(master);
    } catch (error) {
      // The next fault needs all servers.
      await this.#group.recover();
      throw error;
    }
  }

  async delete(key: string): Promise<Taken> {
    return deleteLock([await this.#group.master()], key);
  }

  pings(): readonly (() => Promise<unknown>)[] {
    return pingsOf(this.#group.servers);
  }

  async withoutExpiry(): Promise<string[]> {
    return withoutExpiry([await this.#group.master()]);
  }

  async orphans(): Promise<string[]> {
    return orphans([await this.#group.master()]);
  }

  async stop(): Promise<void> {
    this.#client.disconnect();
    await this.#group.stop();
  }
}

/** Its replicas are cut off and not let in again. A new start of the master forgets that they are not. */
async function isolate({ client }: RedisServer): Promise<void> {
  await client.call('ACL', 'SETUSER', 'default', '-psync', '-sync', '-replconf');
  await client.call('CLIENT', 'KILL', 'TYPE', 'replica');
  await sleep(ISOLATED_MS);
}
