import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { QuorumLockStore } from '../../../lib/quorum/quorum-lock-store.js';
import type { RedisServer } from '../../support/redis-server.js';
import { ServerClock } from '../../support/server-clock.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { FAULTS, type Fault, type FaultName } from '../faults.js';
import { now } from '../history.js';
import type { Step } from '../plan.js';
import { deleteLock, FAULTS_OF_REDIS, orphans, pingsOf, RELEASE_TEXT, RENEW_TEXT, withoutExpiry } from './redis-locks.js';
import { strikeServer } from './strike-server.js';
import type { Taken, Topology } from './topology.js';

const SERVERS = 5;
/**
 * How far the wall clocks of the servers are ahead of the machine's, and those of the workers, in milliseconds: minutes
 * apart.
 */
const AHEAD_MS = { servers: [0, 120_000, -60_000, 0, 30_000], workers: [0, -120_000, 90_000, 0] };
/** How old what a server comes back with is at least, in milliseconds. */
const OLD_MS = 500;
/** For so long a server that has forgotten its locks is not counted, in milliseconds: the lease of a run. */
const LONGEST_LEASE_MS = 1_000;
/** For how long a server that forgets is away, in milliseconds. */
const AWAY_MS = 200;

/**
 * Five servers that know nothing of each other, and keep nothing on disk. Two may be away, and do come back empty, or
 * with earlier data: a FLUSHALL is no fault of theirs, since a server that was emptied while it runs has votes too
 * early, which no quorum survives.
 *
 * The clocks of servers and workers are minutes apart, unless all servers may lose their data at once: then the last
 * fence is known to nobody, and fences rise by the clocks of the servers alone.
 */
export class Quorum implements Topology {
  readonly faults: readonly FaultName[];
  readonly spare = 2;
  readonly keepsOrder = false;
  readonly isShared = false;
  readonly releaseText = RELEASE_TEXT;
  readonly renewText = RENEW_TEXT;
  readonly #servers: readonly RedisServer[];
  readonly #clocks: readonly ServerClock[];
  /** Of the files in which servers keep what they have, where they are asked to. */
  readonly #folder: string;
  #links = 0;
  readonly #away = new Set<RedisServer>();

  private constructor(servers: readonly RedisServer[], clocks: readonly ServerClock[], folder: string, forgetsAll: boolean) {
    this.faults = [...FAULTS_OF_REDIS, 'outage', 'forget', 'snapshot', ...(forgetsAll ? (['rebirth'] as const) : [])];
    this.#servers = servers;
    this.#clocks = clocks;
    this.#folder = folder;
  }

  /** `forgetsAll` where all servers lose at once what they have. */
  static async start(forgetsAll = false): Promise<Quorum> {
    const folder = mkdtempSync(join(tmpdir(), 'lock-quorum-'));
    const clocks = Array.from({ length: SERVERS }, () => new ServerClock());
    const servers = await Promise.all(clocks.map((clock, at) => clock.startServer('--dir', folder, '--dbfilename', fileOf(at))));
    clocks.forEach((clock, at) => clock.set(forgetsAll ? 0 : (AHEAD_MS.servers[at] as number)));
    return new Quorum(servers, clocks, folder, forgetsAll);
  }

  async link(): ReturnType<Topology['link']> {
    const proxies = await Promise.all(this.#servers.map(({ port }) => TcpProxy.start(port)));
    const wallMs = AHEAD_MS.workers[this.#links++ % AHEAD_MS.workers.length] ?? 0;
    return { wallMs, source: { kind: 'quorum', urls: proxies.map(({ url }) => url), longestLeaseMs: LONGEST_LEASE_MS }, proxies };
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
    if (fault === 'rebirth') {
      return this.#servers.map((_, at) => at);
    }
    const most = place === 'link' ? SERVERS : this.spare;
    // Other choices that depend on the chance shall not depend on how many are struck.
    const other = (chance * 1_009) % 1;
    const count = fault === 'outage' ? this.spare + 1 : 1 + Math.floor(other * most);
    const first = Math.floor(((other * most) % 1) * SERVERS);
    return Array.from({ length: count }, (_, at) => (first + at) % SERVERS);
  }

  async strike(step: Step, begun?: () => void): Promise<void> {
    const reached = this.reach(step);
    if (step.fault === 'rebirth') {
      // All at once: none is there while another is away.
      const startedAt = now();
      await Promise.all(this.#servers.map((server) => server.kill()));
      await Promise.all(this.#servers.map((server) => server.start()));
      begun?.();
      await sleep(Math.max(0, startedAt + step.ms - now()));
    } else {
      await Promise.all(reached.map((at) => this.#strikeOne(at, step)));
    }
  }

  async #strikeOne(at: number, { fault, ms }: Step): Promise<void> {
    const server = this.#servers[at] as RedisServer;
    this.#away.add(server);
    try {
      if (fault === 'snapshot') {
        await server.client.save();
        await sleep(OLD_MS);
        await strikeServer(server, 'restart', AWAY_MS);
        // The next time it comes back empty.
        rmSync(join(this.#folder, fileOf(at)));
        await sleep(ms - OLD_MS - AWAY_MS);
      } else if (fault === 'forget') {
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

  pings(): readonly (() => Promise<unknown>)[] {
    return pingsOf(this.#servers);
  }

  withoutExpiry(): Promise<string[]> {
    return withoutExpiry(this.#servers);
  }

  orphans(): Promise<string[]> {
    return orphans(this.#servers, 'run');
  }

  async stop(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.stop()));
    this.#clocks.forEach((clock) => clock.remove());
    rmSync(this.#folder, { recursive: true });
  }
}

function fileOf(at: number): string {
  return `server-${at + 1}.rdb`;
}
