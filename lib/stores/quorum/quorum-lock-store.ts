import { LockConfigurationError } from '../../core/errors.js';
import type {
  AcquireReply,
  ForcedListener,
  HoldRecord,
  LockStore,
  Operator,
  OpenOptions,
  StoredLock,
  Tickets,
} from '../../core/lock-store.js';
import { DONE_MS } from '../kit/protocol.js';
import { checkPrefix } from '../kit/prefix.js';
import { processName } from '../kit/process-name.js';
import type { RedisSource } from '../redis/redis-source.js';
import { fieldOf, RedisCommands } from '../redis/redis-commands.js';
import { RedisKeys } from '../redis/redis-keys.js';
import { readStored } from '../kit/replies.js';
import { Ballot } from './ballot.js';
import { Fences } from './fences.js';
import { ForcedOnce } from './forced-once.js';
import { joinAll } from './joining.js';
import { Grants } from './grants.js';
import { checkSources, longestLeaseOf, type QuorumLockStoreOptions } from './quorum-lock-store.options.js';
import type { Answer, QuorumServer } from './quorum-server.js';
import { Quorum } from './quorum.js';
import { SETTLE, VOTE } from './scripts.js';
import { renewAll } from './renewal.js';
import { startUpAll } from './start-up.js';
import { heldByMajority, majorityOf } from './verdicts.js';
import { Withdrawals } from './withdrawals.js';

/**
 * Locks in a majority of independent Redis servers: the algorithm Redlock
 * (https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/), with fences that rise over any two grants. Any
 * minority of the servers may be away, slow or empty. Whoever waits asks again every 10 to 250 ms; no order is kept, and processes take turns.
 *
 * Given clients, it makes two connections of its own from each and never closes or changes those clients. The servers must not
 * be replicas of each other, and each must be told not to evict.
 */
export class QuorumLockStore implements LockStore, Tickets, Operator {
  readonly tickets: Tickets = this;
  readonly operator: Operator = this;
  readonly expires = true;
  readonly longestLeaseMs: number;
  readonly #sources: readonly RedisSource[];
  /** Which store instance this is; shows where it runs. */
  readonly #process = processName();
  readonly #fences = new Fences();
  readonly #grants = new Grants();
  readonly #forced = new ForcedOnce();
  /** Since when the callers wait that were refused, by the monotonic clock. */
  readonly #waitsSince = new WeakMap<HoldRecord, number>();
  #names = new RedisKeys('lock', false);
  #commands = new RedisCommands(this.#names, this.#process);
  #quorum: Quorum | undefined;
  #withdrawals = new Withdrawals();
  #attempts = 0;
  #closed = false;
  #warn: (message: string) => void = () => undefined;

  /** Takes an odd number of servers, at least 3. Throws `LockConfigurationError` for others, and for unknown options. */
  constructor(sources: readonly RedisSource[], options: QuorumLockStoreOptions = {}) {
    this.#sources = checkSources(sources);
    this.longestLeaseMs = longestLeaseOf(options);
  }

  async open({ prefix, warn }: OpenOptions): Promise<void> {
    this.#names = new RedisKeys(checkPrefix(prefix), false);
    this.#commands = new RedisCommands(this.#names, this.#process);
    this.#warn = warn;
    // Tests make one application after the other from one set of options.
    this.#closed = false;
    this.#quorum?.close();
    try {
      const quorum = this.#connect();
      const away = await quorum.open();
      this.#refuseClosed();
      const [names, process] = [this.#names, this.#process];
      await startUpAll(quorum, away, { names, process, fence: this.#fences.next(quorum.clockMs), warn: this.#warn });
      this.#refuseClosed();
    } catch (error) {
      // What fails because it was closed says less.
      this.#refuseClosed();
      await this.close();
      throw error;
    }
  }

  async acquire(hold: HoldRecord): Promise<AcquireReply> {
    const { key, owner, id, ttlMs, by, limitMs } = hold;
    const sentAt = performance.now();
    const quorum = await this.#open();
    const tag = this.#names.tag(key);
    const attempt = ++this.#attempts;
    const vote = `${id}.${attempt}`;
    const [lock, counter] = [this.#names.lock(tag), this.#names.fence(tag)];
    const proposed = this.#fences.next(quorum.clockMs);
    const waitedMs = Math.ceil(sentAt - (this.#waitsSince.get(hold) ?? sentAt));
    const request = {
      lock,
      done: this.#names.done(tag, id),
      withdrawn: this.#names.done(tag, vote),
      counter,
      line: lineOf(this.#names, tag),
      owner,
      votes: fieldOf(`${id}.`),
      vote: fieldOf(vote),
      process: this.#process,
      by,
      fence: proposed,
      attempt,
      ttl: Math.ceil(ttlMs),
      waited: waitedMs,
    };
    const settlement = { lock, counter, owner, vote: fieldOf(vote) };
    const ballot = new Ballot(quorum, key, {
      vote: (server) => server.askInTime((latest) => VOTE.command(key, { ...request, latest }), limitMs),
      stored: (fence) => this.#fences.stored(fence, proposed),
      settle: async (server, fence) => isOne(await server.ask(SETTLE.command(key, { ...settlement, fence }), limitMs)),
      withdraw: (server) => this.#withdrawals.add(() => this.#drop(server, key, vote, vote, DONE_MS, limitMs), ttlMs),
    });
    const reply = await ballot.result;
    if (reply.fence !== undefined) {
      this.#grants.add(id, vote, sentAt + ttlMs);
    } else if (!this.#waitsSince.has(hold)) {
      this.#waitsSince.set(hold, sentAt);
    }
    return reply;
  }

  async join(hold: HoldRecord): Promise<boolean> {
    const { key, id, ttlMs, limitMs } = hold;
    const quorum = await this.#open();
    return joinAll(quorum, this.#commands, hold, (server, doneMs) =>
      this.#withdrawals.add(() => this.#drop(server, key, id, id, doneMs, limitMs), ttlMs),
    );
  }

  async renew(holds: readonly HoldRecord[]): Promise<(boolean | undefined)[]> {
    const renewals = holds.map((hold) => {
      const { key, owner, id, fence, ttlMs, limitMs, lingering } = hold;
      return { key, owner, id, fence, ttlMs, limitMs, lingering, grant: this.#grants.get(id) };
    });
    const endsAt = performance.now();
    const quorum = await this.#open();
    const verdicts = await renewAll(quorum, this.#names, this.#commands, renewals);
    renewals.forEach(({ grant, ttlMs }, at) => {
      if (grant && verdicts[at]) {
        grant.endsAt = Math.max(grant.endsAt, endsAt + ttlMs);
      }
    });
    return verdicts;
  }

  async release(hold: HoldRecord): Promise<boolean> {
    const { key, id, ttlMs, limitMs } = hold;
    const quorum = await this.#open();
    const vote = this.#grants.get(id)?.vote ?? id;
    let isDecided = false;
    const missed: (() => void)[] = [];
    const send = async (server: QuorumServer): Promise<boolean> => {
      const drop = (): Promise<boolean> => this.#drop(server, key, vote, id, DONE_MS, limitMs);
      try {
        return await drop();
      } catch (error) {
        const repeat = (): void => this.#withdrawals.repeat(drop, ttlMs, error);
        if (isDecided) {
          repeat();
        } else {
          missed.push(repeat);
        }
        throw error;
      }
    };
    const released = await quorum.ask(key, send, (given) => majorityOf(given, quorum.majority));
    // Where too few answered, it is for the caller to repeat it.
    isDecided = true;
    missed.forEach((repeat) => repeat());
    this.#grants.delete(id, vote);
    return released;
  }

  async inspect(key: string): Promise<StoredLock | null> {
    const quorum = await this.#open();
    const command = this.#commands.inspect(key);
    const send = async (server: QuorumServer): Promise<StoredLock | null> => readStored((await server.ask(command)).reply);
    return quorum.ask(key, send, (given) => heldByMajority(given, quorum.majority, quorum.servers.length));
  }

  async forceRelease(key: string, fence: number): Promise<boolean> {
    const quorum = await this.#open();
    const command = this.#commands.forceRelease(key, fence);
    const send = async (server: QuorumServer): Promise<boolean> => isOne(await server.ask(command));
    return quorum.ask(key, send, (given) => majorityOf(given, quorum.majority));
  }

  onForced(listener: ForcedListener): void {
    this.#forced.add(listener);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#withdrawals.close();
    this.#forced.close();
    this.#grants.clear();
    this.#quorum?.close();
    this.#quorum = undefined;
  }

  /** Takes a hold, or the vote of one attempt, out of one server; `done` names what must not come in any more. */
  #drop(server: QuorumServer, key: string, vote: string, done: string, doneMs: number, limitMs: number): Promise<boolean> {
    return server.ask(this.#commands.release({ key, id: vote }, doneMs, done), limitMs).then(isOne);
  }

  #open(): Quorum | Promise<Quorum> {
    const quorum = this.#quorum ?? this.#connect();
    return quorum.isOpen ? quorum : quorum.open().then(() => quorum);
  }

  #refuseClosed(): void {
    if (this.#closed) {
      throw new LockConfigurationError('QuorumLockStore was closed. Make a new one for new locks.');
    }
  }

  #connect(): Quorum {
    this.#refuseClosed();
    this.#withdrawals = new Withdrawals();
    const quorum = new Quorum(this.#sources, this.#names, this.longestLeaseMs, (message) => this.#warn(message));
    this.#quorum = quorum;
    for (const { wakeups } of quorum.servers) {
      wakeups.onForced(this.#forced.tell);
    }
    return quorum;
  }
}

/** Where a server notes who waits for a key. */
export function lineOf({ prefix }: RedisKeys, tag: string): string {
  return `${prefix}:line:${tag}`;
}

function isOne({ reply }: Answer): boolean {
  return Number(reply) === 1;
}
