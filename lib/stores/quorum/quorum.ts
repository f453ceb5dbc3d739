import { setTimeout as sleep } from 'node:timers/promises';
import { LockConfigurationError } from '../../core/errors.js';
import { asLockError } from '../../core/background-releases.js';
import type { RedisKeys } from '../redis/redis-keys.js';
import type { RedisSource } from '../redis/redis-source.js';
import { QuorumServer, type ServerListener } from './quorum-server.js';
import { longestOf, numbersSaid, verdictOf, type Standing, type Verdict } from './standing.js';
import { tooFew, type Failure } from './too-few.js';
import { MOST_AHEAD_US } from './vote-rules.js';

/** For how long a start waits for the votes of servers that may be new, and how often it looks, in milliseconds. */
const START_MS = 7_000;
const LOOK_MS = 20;

/** The servers of a quorum, which are asked all at once. */
export class Quorum {
  readonly servers: readonly QuorumServer[];
  readonly majority: number;
  #opening: Promise<readonly (Failure | undefined)[]> | undefined;
  #isOpen = false;
  readonly #longestLeaseMs: number;
  readonly #warn: (message: string) => void;
  readonly #warned = new Set<string>();
  #considering: Promise<void> | undefined;

  constructor(sources: readonly RedisSource[], keys: RedisKeys, longestLeaseMs: number, warn: (message: string) => void) {
    this.#longestLeaseMs = longestLeaseMs;
    this.#warn = warn;
    const listener: ServerListener = {
      came: (server) => this.servers.forEach((other) => other !== server && other.lookSoon()),
      looked: () => void this.#consider(),
      said: () => this.#said(),
      verdict: (server) => this.#verdict(server),
      warn,
    };
    this.servers = sources.map(
      (source, at) => new QuorumServer(source, `server ${at + 1} of ${sources.length}`, keys, longestLeaseMs, listener),
    );
    this.majority = (sources.length + 1) / 2;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /**
   * What the servers' clocks read, in ms since 1970: no later than those of a majority, as far as they have told, so that a
   * minority whose clocks are ahead leads nobody on.
   */
  get clockMs(): number | undefined {
    const clocks = this.servers.flatMap(({ clockMs }) => clockMs ?? []).toSorted((first, second) => second - first);
    return clocks[Math.min(this.majority, clocks.length) - 1];
  }

  /** Connects; resolves with what failed when all servers were checked, or did not answer in time. */
  open(): Promise<readonly (Failure | undefined)[]> {
    return (this.#opening ??= this.#open());
  }

  /**
   * Asks all servers. Resolves with the first verdict of `judge` on the answers so far, of which `missing` more may come, and
   * rejects when too few can answer.
   */
  ask<T, V>(
    key: string,
    send: (server: QuorumServer) => Promise<T>,
    judge: (given: readonly T[], missing: number) => V | undefined,
  ): Promise<V> {
    return new Promise((resolve, reject) => {
      const given: T[] = [];
      const failures: Failure[] = [];
      let missing = this.servers.length;
      const consider = (): void => {
        const verdict = judge(given, missing);
        if (verdict !== undefined) {
          resolve(verdict);
        } else if (given.length + missing < this.majority || missing === 0) {
          reject(tooFew(key, this.servers.length, failures, given.length > 0));
        }
      };
      for (const server of this.servers) {
        send(server).then(
          (answer) => {
            given.push(answer);
            missing--;
            consider();
          },
          (error: unknown) => {
            failures.push({ server, error: asLockError(error, key) });
            missing--;
            consider();
          },
        );
      }
    });
  }

  close(): void {
    for (const server of this.servers) {
      server.close();
    }
  }

  async #open(): Promise<readonly (Failure | undefined)[]> {
    const failures = await Promise.all(
      this.servers.map(async (server) => {
        try {
          for (const warning of await server.open()) {
            this.#warn(`${server.name} of the quorum: ${warning}`);
          }
        } catch (error) {
          return { server, error: asLockError(error, '') };
        }
      }),
    );
    await this.#consider();
    this.#refuseTwice();
    this.#refuseOthers();
    await this.#awaitVotes();
    this.#isOpen = true;
    return failures;
  }

  /** One server by two names would make a majority of fewer servers. */
  #refuseTwice(): void {
    const runs = new Map<string, QuorumServer>();
    for (const server of this.servers) {
      const other = server.run === undefined ? undefined : runs.get(server.run);
      if (other) {
        throw new LockConfigurationError(`QuorumLockStore: ${other.name} and ${server.name} are the same. Pass independent servers.`);
      }
      runs.set(server.run ?? server.name, server);
    }
  }

  /** A majority of more servers, or of fewer, need not have one in common with a majority of these. */
  #refuseOthers(): void {
    const { length } = this.servers;
    const other = numbersSaid(this.#standings(), 'servers').find((number) => number !== length);
    if (other !== undefined) {
      throw new LockConfigurationError(
        `QuorumLockStore was given ${length} servers, and other processes use some of them in a quorum of ${other}. Give all processes the same ` +
          `list. To change how many there are, end all processes that have the other list, and wait for ${this.#longestLeaseMs} ms.`,
      );
    }
  }

  /** Another process may just be finding out that the quorum is new, or that it is not. */
  async #awaitVotes(): Promise<void> {
    const startedAt = performance.now();
    const waits = (): boolean => {
      const verdicts = this.servers.map((server) => (server.counts ? undefined : this.#verdict(server)));
      const there = this.servers.filter(({ standing }) => standing !== undefined);
      return there.length >= this.majority && verdicts.some((verdict) => verdict && (verdict.counts || verdict.why === 'asking'));
    };
    while (waits() && performance.now() - startedAt < START_MS) {
      await sleep(LOOK_MS, undefined, { ref: false });
    }
  }

  #standings(): (Standing | undefined)[] {
    return this.servers.map(({ standing }) => standing);
  }

  #verdict({ standing }: QuorumServer): Verdict | undefined {
    const runs = this.servers.flatMap((server) => (server.standing && server.run) ?? []);
    const [standings, longestLeaseMs, now] = [this.#standings(), this.#longestLeaseMs, performance.now()];
    return standing && verdictOf(standing, { standings, runs: new Set(runs), longestLeaseMs, now });
  }

  /** What every server is told of this process: its servers, for as long as a lease may last that they have voted for, and its settings. */
  #said(): (string | number)[] {
    const longestMs = this.#longestLeaseMs;
    const now = performance.now();
    const runs = this.servers.flatMap(({ run, standing }) =>
      run !== undefined && standing ? [`run:${run}`, Math.ceil(longestMs - (now - standing.at))] : [],
    );
    return [`servers:${this.servers.length}`, longestMs, `lease:${longestMs}`, 2 * longestMs, ...runs];
  }

  #consider(): Promise<void> {
    return (this.#considering ??= this.#count().finally(() => (this.#considering = undefined)));
  }

  /** Has the votes count of those servers that have a right to, with fences above all that the others know. */
  async #count(): Promise<void> {
    this.#compareLeases();
    const isReady = (server: QuorumServer): boolean => !server.counts && this.#verdict(server)?.counts !== undefined;
    if (!this.servers.some(isReady)) {
      return;
    }
    // They are asked again: what one said earlier may be over, and each may have granted since.
    await Promise.all(this.servers.map((server) => server.look().catch(() => undefined)));
    const known = this.#standings().map((standing) => standing?.fence ?? 0);
    // What is granted may be so far ahead of the servers' clocks.
    const least = Math.max(...known, Math.floor((this.clockMs ?? 0) * 1_000) + MOST_AHEAD_US);
    const counted = this.servers.map((server) => (server.counts ? undefined : this.#verdict(server)?.counts));
    await Promise.all(this.servers.map((server, at) => server.look(counted[at] ?? '', least).catch(() => undefined)));
  }

  #compareLeases(): void {
    const longest = longestOf(this.#standings(), this.#longestLeaseMs);
    if (longest > this.#longestLeaseMs) {
      this.#warnOnce(
        `Another process uses this quorum with longestLease ${longest} ms, and this one has ${this.#longestLeaseMs} ms. Set the same in all; ` +
          'until then a server that restarted is left out for the longer of them.',
      );
    }
  }

  #warnOnce(message: string): void {
    if (!this.#warned.has(message)) {
      this.#warned.add(message);
      this.#warn(message);
    }
  }
}
