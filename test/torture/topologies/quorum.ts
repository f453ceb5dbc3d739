import { setTimeout as sleep } from 'node:timers/promises';
import { QuorumLockStore } from '../../../lib/quorum/quorum-lock-store.js';
import { RedisServer } from '../../support/redis-server.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { FAULTS, type Fault, type FaultName } from '../faults.js';
import { now } from '../history.js';
import type { Step } from '../plan.js';
import { deleteLock, FAULTS_OF_REDIS, orphans, RELEASE_TEXT, withoutExpiry } from './redis-locks.js';
import { strikeServer } from './strike-server.js';
import type { Taken, Topology } from './topology.js';

const SERVERS = 5;
/** For so long a server that has forgotten its locks is not counted, in milliseconds: the lease of a run. */
const LONGEST_LEASE_MS = 1_000;
/** How often a server is looked at, and from when on its answer is slow beside the limit of a command, in milliseconds. */
const PULSE_MS = 20;
const SLOW_MS = 50;
/** For how long a server that forgets is away, in milliseconds. */
const AWAY_MS = 200;

/**
 * Five servers that know nothing of each other, and keep nothing on disk. Two may be away, and do come back empty: a FLUSHALL is
 * no fault of theirs, since a server that was emptied while it runs has votes too early, which no quorum survives.
 */
export class Quorum implements Topology {
  readonly faults: readonly FaultName[] = [...FAULTS_OF_REDIS, 'outage', 'forget'];
  readonly spare = 2;
  readonly keepsOrder = false;
  readonly releaseText = RELEASE_TEXT;
  readonly #servers: readonly RedisServer[];
  readonly #away = new Set<RedisServer>();
  #stopped = false;

  private constructor(servers: readonly RedisServer[]) {
    this.#servers = servers;
  }

  static async start(): Promise<Quorum> {
    return new Quorum(await Promise.all(Array.from({ length: SERVERS }, () => RedisServer.start())));
  }

  async link(): ReturnType<Topology['link']> {
    const proxies = await Promise.all(this.#servers.map(({ port }) => TcpProxy.start(port)));
    return { source: { kind: 'quorum', urls: proxies.map(({ url }) => url), longestLeaseMs: LONGEST_LEASE_MS }, proxies };
  }

  store(): QuorumLockStore {
    return new QuorumLockStore(
      this.#servers.map(({ url }) => url),
      { longestLease: LONGEST_LEASE_MS },
    );
  }

  /** Neighbours, as many as the fault may strike. */
  reach({ fault, chance }: Step): readonly number[] {
    const { place }: Fault = FAULTS[fault];
    const most = place === 'link' ? SERVERS : this.spare;
    // What else depends on the chance shall not depend on how many are struck.
    const other = (chance * 1_009) % 1;
    const count = fault === 'outage' ? this.spare + 1 : 1 + Math.floor(other * most);
    const first = Math.floor(((other * most) % 1) * SERVERS);
    return Array.from({ length: count }, (_, at) => (first + at) % SERVERS);
  }

  async strike(step: Step): Promise<void> {
    await Promise.all(this.reach(step).map((at) => this.#strikeOne(this.#servers[at] as RedisServer, step)));
  }

  async #strikeOne(server: RedisServer, { fault, ms }: Step): Promise<void> {
    this.#away.add(server);
    try {
      if (fault === 'forget') {
        await strikeServer(server, 'restart', AWAY_MS);
        await sleep(ms - AWAY_MS);
      } else {
        await strikeServer(server, fault === 'outage' ? 'stall' : fault, ms);
      }
    } finally {
      this.#away.delete(server);
    }
  }

  /** On the servers that are there: the others would delete later what somebody else has then. */
  async delete(key: string): Promise<Taken> {
    const there = this.#servers.filter((server) => !this.#away.has(server));
    const taken = await Promise.all(there.map((server) => deleteLock([server], key)));
    const fences = [...new Set(taken.flatMap(({ fence }) => fence ?? []))];
    return fences.length === 0 ? { outcome: 'nothing' } : fences.length === 1 ? { fence: fences[0] as number } : {};
  }

  watch(slow: (server: number, since: number) => void): void {
    this.#servers.forEach((server, at) => void this.#look(server, (since) => slow(at, since)));
  }

  async #look({ client }: RedisServer, slow: (since: number) => void): Promise<void> {
    while (!this.#stopped) {
      const since = now();
      await client.ping().catch(() => undefined);
      if (now() - since > SLOW_MS) {
        slow(since);
      }
      await sleep(PULSE_MS);
    }
  }

  withoutExpiry(): Promise<string[]> {
    return withoutExpiry(this.#servers);
  }

  orphans(): Promise<string[]> {
    return orphans(this.#servers, 'run');
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#servers.map((server) => server.stop()));
  }
}
