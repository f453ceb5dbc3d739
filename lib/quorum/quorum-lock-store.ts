import { AsyncResource } from 'node:async_hooks';
import { LockConfigurationError } from '../core/words/errors.js';
import type {
  AcquireReply,
  ForcedListener,
  FoundLock,
  HoldRecord,
  LockStore,
  Messages,
  Operator,
  OpenOptions,
  StoredLock,
  Tickets,
} from '../core/seam/lock-store.js';
import { OncePerKey } from '../core/words/once-per-key.js';
import type { StoreHealth } from '../core/words/lock-health.js';
import { checkPrefix } from '../core/words/lock-key.js';
import { Listeners } from '../kit/listeners.js';
import { processName } from '../kit/process-name.js';
import { readStored } from '../kit/replies.js';
import type { RedisOrigin, RedisSource } from '../redis/connection/redis-source.js';
import { RedisKeys } from '../redis/scripts/redis-keys.js';
import { renewTogether } from '../redis/renewals.js';
import { acquireAll } from './votes/acquiring.js';
import { Fences } from './votes/fences.js';
import { Grants } from './votes/grants.js';
import { joinAll } from './joining.js';
import { QuorumCommands, voteOf } from './votes/quorum-commands.js';
import { checkSources, checkQuorumOptions, type QuorumLockStoreOptions } from './quorum-lock-store.options.js';
import { Quorum } from './quorum.js';
import { releaseAll } from './releasing.js';
import { renewAll } from './renewing.js';
import { isOne } from '../redis/scripts/redis-commands.js';
import { searchAll } from './searching.js';
import { startUpAll } from './members/start-up.js';
import { heldByMajority, majorityOf } from './votes/verdicts.js';
import { Waits } from './votes/waits.js';

/**
 * Locks in a majority of independent Redis servers: the algorithm Redlock
 * (https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/), with fences that rise over any two
 * grants. Any minority of the servers may be away, slow or empty. Waiting processes poll every 5 to 250 ms; there is no
 * queue, and they take turns.
 *
 * Given clients, it makes two connections of its own from each and never closes or changes those clients. The servers
 * must not be replicas of each other, and each must be configured not to evict.
 */
export class QuorumLockStore implements LockStore, Tickets, Operator, Messages {
  readonly tickets: Tickets = this;
  readonly operator: Operator = this;
  readonly messages: Messages = this;
  readonly expires = true;
  readonly reservesFences = true;
  readonly longestLeaseMs: number;
  readonly #origins: readonly RedisOrigin[];
  /** Which store instance this is; shows where it runs. */
  readonly process = processName();
  readonly #fences = new Fences();
  readonly #grants = new Grants();
  readonly #listeners = new Listeners();
  /** Every server that is there sends a copy of a message. */
  readonly #seen = { forced: new OncePerKey(), messages: new OncePerKey() };
  readonly #waits = new Waits();
  #names = new RedisKeys('lock', false);
  #quorum: Quorum | undefined;
  #attempts = 0;
  #closed = false;
  #readOnly = false;
  #warn: (message: string) => void = () => undefined;

  /**
   * Takes an odd number of servers, at least 3. Throws `LockConfigurationError` for another number, and for unknown
   * options.
   */
  constructor(sources: readonly RedisSource[], options: QuorumLockStoreOptions = {}) {
    const { longestLeaseMs, credentials } = checkQuorumOptions(options);
    this.#origins = checkSources(sources).map((source) => ({ source, credentials }));
    this.longestLeaseMs = longestLeaseMs;
  }

  async open({ prefix, warn, readOnly = false }: OpenOptions): Promise<void> {
    this.#names = new RedisKeys(checkPrefix(prefix), false);
    this.#warn = warn;
    this.#readOnly = readOnly;
    // Tests make one application after the other from one set of options.
    this.#closed = false;
    this.#quorum?.close();
    const quorum = this.#connect();
    try {
      const failures = await quorum.open();
      this.#refuseClosed(quorum);
      await startUpAll(quorum, failures, { readOnly, warn, fence: this.#fences.next(1, quorum.clockMs) });
      this.#refuseClosed(quorum);
    } catch (error) {
      // An operation that fails because the quorum was closed has an error that says less.
      this.#refuseClosed(quorum);
      await this.close();
      throw error;
    }
  }

  async acquire(hold: HoldRecord): Promise<AcquireReply> {
    const sentAt = performance.now();
    const quorum = await this.#open();
    const attempt = ++this.#attempts;
    const reply = await acquireAll(quorum, this.#fences, hold, attempt, this.#waits.waitedMs(hold, sentAt));
    if (reply.fence === undefined) {
      this.#waits.refused(hold, sentAt);
    } else {
      this.#waits.granted(hold);
      this.#grants.add(hold, voteOf(hold.id, attempt), sentAt);
    }
    return reply;
  }

  async join(hold: HoldRecord): Promise<boolean> {
    const sentAt = performance.now();
    const quorum = await this.#open();
    const isIn = await joinAll(quorum, hold);
    if (isIn) {
      this.#grants.add(hold, voteOf(hold.id, 0), sentAt, sentAt - quorum.ageMs(hold.fence));
    }
    return isIn;
  }

  async renew(holds: readonly HoldRecord[]): Promise<(boolean | undefined)[]> {
    const sentAt = performance.now();
    const quorum = await this.#open();
    const verdicts = await renewTogether(holds, (some) => renewAll(quorum, this.#grants, some));
    holds.forEach((hold, at) => verdicts[at] && this.#grants.renewed(hold, sentAt));
    return verdicts;
  }

  async release(hold: HoldRecord): Promise<boolean> {
    const vote = this.#grants.release(hold.id);
    const released = await releaseAll(await this.#open(), hold, vote);
    this.#grants.delete(hold.id, vote);
    return released;
  }

  async inspect(key: string): Promise<StoredLock | null> {
    const quorum = await this.#open();
    const command = quorum.commands.inspect(key);
    return quorum.ask(
      key,
      async (server) => readStored((await server.ask(command)).reply),
      (given, missing) => heldByMajority(given, quorum.majority, quorum.servers.length, missing),
    );
  }

  async forceRelease(key: string, fence: number): Promise<boolean> {
    const quorum = await this.#open();
    const command = quorum.commands.forceRelease(key, fence);
    return quorum.ask(
      key,
      async (server) => isOne((await server.ask(command)).reply),
      (given) => majorityOf(given, quorum.majority),
    );
  }

  async health(): Promise<StoreHealth> {
    return (await this.#open()).membership.health();
  }

  search(prefix: string): AsyncIterable<readonly FoundLock[]> {
    return searchAll(this.#origins, this.#names, prefix, (key) => this.inspect(key));
  }

  async send(text: string, process?: string): Promise<void> {
    await (await this.#open()).publish(text, process);
  }

  onMessage(listener: (text: string) => void, until?: AbortSignal): void {
    this.#listeners.onMessage(listener, until);
  }

  onForced(listener: ForcedListener, until?: AbortSignal): void {
    this.#listeners.onForced(listener, until);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#grants.clear();
    this.#quorum?.close();
    this.#quorum = undefined;
  }

  #open(): Quorum | Promise<Quorum> {
    return this.#quorum?.isOpen ? this.#quorum : this.#openLate();
  }

  /** Bound to where the store was made: the connections must not keep the context of the call that needs them first. */
  readonly #openLate = AsyncResource.bind(async (): Promise<Quorum> => {
    const quorum = this.#quorum ?? this.#connect();
    await quorum.open();
    return quorum;
  });

  /** Throws also where the store was opened again after `quorum` was closed. */
  #refuseClosed(quorum = this.#quorum): void {
    if (this.#closed || quorum !== this.#quorum) {
      throw new LockConfigurationError('QuorumLockStore was closed. Make a new one for new locks.');
    }
  }

  #connect(): Quorum {
    this.#refuseClosed();
    const commands = new QuorumCommands(this.#names, this.process);
    const warn = (message: string): void => this.#warn(message);
    const quorum = new Quorum(this.#origins, commands, { longestLeaseMs: this.longestLeaseMs, readOnly: this.#readOnly, warn });
    this.#quorum = quorum;
    for (const { wakeups } of quorum.servers) {
      wakeups.listeners.onMessage((text, id) => this.#seen.messages.isNew(id) && this.#listeners.message(text));
      wakeups.listeners.onForced((key, fence) => this.#seen.forced.isNew(`${fence} ${key}`) && this.#listeners.forced(key, fence));
    }
    return quorum;
  }
}
