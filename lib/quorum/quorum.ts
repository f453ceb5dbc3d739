import { setTimeout as sleep } from 'node:timers/promises';
import { LockConfigurationError } from '../core/errors.js';
import { asLockError } from '../core/background-releases.js';
import type { RedisKeys } from '../redis/redis-keys.js';
import type { RedisSource } from '../redis/redis-client.js';
import { QuorumServer } from './quorum-server.js';
import { tooFew, type Failure } from './too-few.js';

/** For how long a start waits for the votes of servers that are there, and how often it looks, in milliseconds. */
const START_MS = 600;
const LOOK_MS = 20;

/** The servers of a quorum, which are asked all at once. */
export class Quorum {
  readonly servers: readonly QuorumServer[];
  readonly majority: number;
  #opening: Promise<readonly (Failure | undefined)[]> | undefined;
  #isOpen = false;
  readonly #warn: (message: string) => void;
  #considering: Promise<void> | undefined;

  constructor(sources: readonly RedisSource[], keys: RedisKeys, longestLeaseMs: number, warn: (message: string) => void) {
    this.#warn = warn;
    const listener = { checked: () => void this.#considerFirstUse(), warn };
    this.servers = sources.map(
      (source, at) => new QuorumServer(source, `server ${at + 1} of ${sources.length}`, keys, longestLeaseMs, listener),
    );
    this.majority = (sources.length + 1) / 2;
  }

  get isOpen(): boolean {
    return this.#isOpen;
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
    await this.#considerFirstUse();
    this.#refuseTwice();
    await this.#awaitVotes();
    this.#isOpen = true;
    return failures;
  }

  /** One server by two names would make a majority of fewer servers. */
  #refuseTwice(): void {
    const runs = new Map<string, QuorumServer>();
    for (const server of this.servers) {
      const other = server.runId === undefined ? undefined : runs.get(server.runId);
      if (other) {
        throw new LockConfigurationError(`QuorumLockStore: ${other.name} and ${server.name} are the same. Pass independent servers.`);
      }
      runs.set(server.runId ?? server.name, server);
    }
  }

  /** Another process may just be finding out that the quorum is new. */
  async #awaitVotes(): Promise<void> {
    const startedAt = performance.now();
    const waits = (): boolean => this.servers.some((server) => server.runId !== undefined && !server.counts);
    while (waits() && performance.now() - startedAt < START_MS) {
      await sleep(LOOK_MS, undefined, { ref: false });
    }
  }

  #considerFirstUse(): Promise<void> {
    return (this.#considering ??= this.#countIfNew().finally(() => (this.#considering = undefined)));
  }

  /**
   * Where all servers are there and the votes of none have ever counted, the quorum is used for the first time, and nothing can have
   * been lost. They are asked again when all are connected: what one said earlier may be over.
   */
  async #countIfNew(): Promise<void> {
    if (!this.servers.every((server) => server.isNew)) {
      return;
    }
    try {
      const sessions = await Promise.all(this.servers.map((server) => server.look()));
      if (sessions.every((session) => session?.recorded === '')) {
        // All know it before one votes: whoever finds a vote finds out as well that it counts.
        await Promise.all(this.servers.map((server, at) => server.remember(sessions[at])));
        this.servers.forEach((server, at) => server.count(sessions[at]));
      }
    } catch {
      // A server that went away is checked again when it is back.
    }
  }
}
