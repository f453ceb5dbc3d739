import { RedisLockStore } from '../../../lib/redis/redis-lock-store.js';
import { RedisServer } from '../../support/redis-server.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import type { FaultName } from '../faults.js';
import type { Step } from '../plan.js';
import { deleteLock, FAULTS_OF_REDIS, orphans, pingsOf, RELEASE_TEXT, RENEW_TEXT, withoutExpiry } from './redis-locks.js';
import { strikeServer } from './strike-server.js';
import type { Taken, Topology } from './topology.js';

/** One server, which keeps nothing on disk. */
export class Single implements Topology {
  readonly faults: readonly FaultName[] = [...FAULTS_OF_REDIS, 'nest', 'restart', 'flush'];
  readonly spare = 0;
  readonly keepsOrder = true;
  readonly isShared = true;
  readonly releaseText = RELEASE_TEXT;
  readonly renewText = RENEW_TEXT;
  readonly #server: RedisServer;

  private constructor(server: RedisServer) {
    this.#server = server;
  }

  static async start(): Promise<Single> {
    return new Single(await RedisServer.start());
  }

  async link(): ReturnType<Topology['link']> {
    const proxy = await TcpProxy.start(this.#server.port);
    return { source: { kind: 'single', url: proxy.url }, proxies: [proxy] };
  }

  store(): RedisLockStore {
    return new RedisLockStore(this.#server.url);
  }

  strike({ fault, ms }: Step): Promise<void> {
    return strikeServer(this.#server, fault, ms);
  }

  async delete(key: string): Promise<Taken> {
    return deleteLock([this.#server], key);
  }

  pings(): readonly (() => Promise<unknown>)[] {
    return pingsOf([this.#server]);
  }

  async withoutExpiry(): Promise<string[]> {
    return withoutExpiry([this.#server]);
  }

  async orphans(): Promise<string[]> {
    return orphans([this.#server]);
  }

  stop(): Promise<void> {
    return this.#server.stop();
  }
}
