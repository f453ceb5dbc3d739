import { LockStoreError } from '../core/words/errors.js';
import type {
  AcquireReply,
  ForcedListener,
  FoundLock,
  HoldRecord,
  LockStore,
  Messages,
  OpenOptions,
  Operator,
  Place,
  StoredLock,
  Tickets,
  TurnListener,
  Turns,
} from '../core/seam/lock-store.js';
import type { StoreHealth } from '../core/words/lock-health.js';
import { leastLimitOf, LONGEST_COMMAND_MS } from '../core/seam/time.js';
import { checkPrefix } from '../core/words/lock-key.js';
import { throwIfAllFailed } from '../kit/all-failed.js';
import { RECHECK_MS } from '../kit/protocol.js';
import { otherKindOfKey, tooManyHolds } from '../kit/refusals.js';
import { readBusy, readStored } from '../kit/replies.js';
import { answeredOf, membersOf, worstOf } from '../kit/probe.js';
import { ServerClock } from '../kit/server-clock.js';
import { processName } from '../kit/process-name.js';
import { checkSource, isCluster, type RedisOrigin, type RedisSource } from './connection/redis-source.js';
import { RedisConnection } from './connection/redis-connection.js';
import { checkRedisOptions, type RedisLockStoreOptions } from './redis-lock-store.options.js';
import { isLate, isOne, otherKindIn, readAnswers, RedisCommands, timeIn } from './scripts/redis-commands.js';
import { RedisKeys } from './scripts/redis-keys.js';
import { Replication } from './replication.js';
import { renewEach, renewTogether } from './renewals.js';
import { toLockError } from './connection/redis-errors.js';
import { neverConnected } from './connection/tls-errors.js';
import type { Command } from './scripts/script.js';
import { searchLocks } from './search.js';
import { BATCH, EXCHANGE } from './scripts/scripts.js';
import { checkServer, tryRights } from './server-check.js';
import { evictsBy } from './server-info.js';
import { warnOfRefusal, Wakeups } from './wakeups.js';

/**
 * Locks in one Redis server, or where a client of a Cluster or of Sentinel leads. Waiters are served in order, first
 * come first served, and are notified of their turn.
 *
 * Given a client, it makes two connections of its own from it (four with `minReplicas`) and never closes or changes
 * that client. Given a URL or options, it makes its connections from them.
 */
export class RedisLockStore implements LockStore, Turns, Tickets, Operator, Messages {
  readonly expires = true;
  readonly reservesFences = true;
  readonly shared = true;
  readonly permits = true;
  readonly keepsLimits = true;
  readonly turns: Turns = this;
  readonly tickets: Tickets = this;
  readonly operator: Operator = this;
  readonly messages: Messages = this;
  readonly #origin: RedisOrigin;
  readonly #isCluster: boolean;
  readonly #minReplicas: number;
  /** Which store instance this is; shows where it runs. */
  readonly process = processName();
  readonly #wakeups: Wakeups;
  #commands: RedisCommands;
  #connection: RedisConnection;
  /** Undefined where replicas confirm nothing. */
  #replication: Replication | undefined;
  #warn: (message: string) => void = () => undefined;
  /** Whether the server may evict locks, as it said when the store was opened. */
  #evicts: boolean | undefined;
  /**
   * One estimate for all servers of a cluster: where their clocks differ by more than a second, some commands are sent
   * twice.
   */
  readonly #clock = new ServerClock();

  constructor(source: RedisSource, options: RedisLockStoreOptions = {}) {
    const { minReplicas, credentials } = checkRedisOptions(options);
    this.#origin = { source: checkSource(source), credentials };
    this.#minReplicas = minReplicas;
    this.#isCluster = isCluster(this.#origin.source);
    this.#commands = new RedisCommands(new RedisKeys('lock', this.#isCluster), this.process);
    this.#wakeups = new Wakeups(this.#origin, this.#isCluster);
    this.#connection = this.#connect();
    this.#replication = this.#newReplication();
  }

  async open({ prefix, warn, readOnly = false }: OpenOptions): Promise<void> {
    const names = new RedisKeys(checkPrefix(prefix), this.#isCluster);
    this.#commands = new RedisCommands(names, this.process);
    this.#warn = warn;
    if (this.#connection.closed) {
      // Tests make one application after the other from one set of options.
      this.#connection = this.#connect();
      this.#replication = this.#newReplication();
    }
    try {
      this.#subscribe();
      this.#evicts = evictsBy(await checkServer(this.#connection, warn));
      if (!readOnly) {
        await tryRights(this, this.process);
        await this.#connection.plain.publish(names, 'check', this.process).catch((error: Error) => this.#refused('PUBLISH', error));
      }
    } catch (error) {
      if (!(error instanceof LockStoreError)) {
        await this.close();
        throw error;
      }
      warn(`${error.detail}${neverConnected(error)} Locked calls fail until then.`);
    }
  }

  acquire(hold: HoldRecord, place?: Place): Promise<AcquireReply> {
    this.#listen();
    this.#replication?.asksAgain(hold);
    const polls = !this.#wakeups.areCertain;
    const sentAt = performance.now();
    const named = this.#named(hold);
    const command = this.#commands.acquire(named, place, polls, this.#clock.latest(sentAt, hold.limitMs));
    return this.#connection.run(command, hold.limitMs, (reply) => {
      this.#clock.read(timeIn(reply), sentAt);
      if (isLate(reply)) {
        const again = this.#again(hold, sentAt, (latest) => this.#commands.acquire(named, place, polls, latest));
        return again.then((answer) => this.#read(answer, hold, place, sentAt));
      }
      return this.#read(reply, hold, place, sentAt);
    });
  }

  async exchange(
    hold: HoldRecord,
    next: HoldRecord,
    place: Place,
    mayOvertake: boolean,
  ): Promise<{ released: boolean; reply: AcquireReply | Promise<AcquireReply> }> {
    this.#listen();
    const { key, limitMs } = hold;
    const sentAt = performance.now();
    const latest = this.#clock.latest(sentAt, limitMs);
    const polls = !this.#wakeups.areCertain;
    const command = this.#commands.exchange(this.#released(hold), this.#named(next), place, polls, mayOvertake, latest);
    const [answer, nextAnswer] = await this.#connection.run(command, limitMs, (reply) => reply as readonly unknown[]);
    const answeredAt = performance.now();
    const released = isOne(answer);
    if (nextAnswer instanceof Error) {
      return { released, reply: Promise.reject(toLockError(nextAnswer, key, undefined, EXCHANGE)) };
    }
    this.#clock.read(timeIn(nextAnswer), sentAt);
    const reply = isLate(nextAnswer) ? this.acquire(next, place) : this.#read(nextAnswer, next, place, answeredAt);
    return { released, reply };
  }

  leave(key: string, name: string): Promise<void> {
    return this.#connection.run(this.#commands.leave(key, name), LONGEST_COMMAND_MS, () => undefined);
  }

  async join(hold: HoldRecord): Promise<boolean> {
    this.#listen();
    this.#replication?.asksAgain(hold);
    const sentAt = performance.now();
    const named = this.#named(hold);
    const command = this.#commands.join(named, this.#clock.latest(sentAt, hold.limitMs));
    let reply = await this.#connection.run(command, hold.limitMs, (answer) => answer);
    if (isLate(reply)) {
      this.#clock.read(timeIn(reply), sentAt);
      reply = await this.#again(hold, sentAt, (latest) => this.#commands.join(named, latest));
    }
    if (Number(reply) === -1) {
      throw tooManyHolds(hold.key);
    }
    const joined = isOne(reply);
    if (joined) {
      await this.#replication?.confirm(hold, hold.fence, sentAt);
    }
    return joined;
  }

  renew(holds: readonly HoldRecord[]): Promise<(boolean | undefined)[]> {
    const renew = (some: readonly HoldRecord[]): Promise<(boolean | undefined)[]> =>
      this.#replication
        ? this.#replication.renew(some.map((hold) => this.#named(hold)))
        : this.#connection.run(this.#commands.renew(some), leastLimitOf(some), readAnswers);
    // On a cluster the keys of one command must share a slot, and a shard that is away must not end the leases of the
    // others.
    return this.#isCluster ? renewEach(holds, renew) : renewTogether(holds, renew);
  }

  release(hold: HoldRecord): Promise<boolean> {
    return this.#connection.run(this.#commands.release(this.#isCluster ? this.#released(hold) : this.#named(hold)), hold.limitMs, isOne);
  }

  inspect(key: string): Promise<StoredLock | null> {
    return this.#connection.run(this.#commands.inspect(key), LONGEST_COMMAND_MS, readStored);
  }

  forceRelease(key: string, fence: number): Promise<boolean> {
    return this.#connection.run(this.#commands.forceRelease(key, fence), LONGEST_COMMAND_MS, isOne);
  }

  async health(): Promise<StoreHealth> {
    // WAIT answers for one server, and on a cluster each slot has another.
    const replication = this.#isCluster ? undefined : this.#replication;
    const [answers, replicasConfirm, isHeard] = await Promise.all([
      this.#connection.plain.probe(),
      replication?.isConfirmed(this.#commands.names.wake(this.process)),
      // The server of the commands may be another one than that of the subscription. A cluster passes messages on.
      this.#isCluster || this.#connection.plain.isHeard(this.#commands.names.wake(this.process)),
    ]);
    throwIfAllFailed(answers);
    return {
      ...worstOf(answeredOf(answers)),
      hearsTurns: this.#wakeups.arrive && isHeard,
      replicasConfirm,
      members: membersOf(answers),
      evicts: this.#evicts,
    };
  }

  search(prefix: string): AsyncIterable<readonly FoundLock[]> {
    return searchLocks(new RedisConnection(this.#origin), this.#commands, prefix);
  }

  async send(text: string, process?: string): Promise<void> {
    try {
      await this.#connection.plain.publish(this.#commands.names, `note - ${text}`, process);
    } catch (error) {
      throw toLockError(error, '', undefined);
    }
  }

  onMessage(listener: (text: string) => void, until?: AbortSignal): void {
    this.#wakeups.listeners.onMessage(listener, until);
  }

  onForced(listener: ForcedListener, until?: AbortSignal): void {
    this.#wakeups.listeners.onForced(listener, until);
  }

  onTurn(listener: TurnListener, until?: AbortSignal): void {
    this.#wakeups.listeners.onTurn(listener, until);
  }

  async close(): Promise<void> {
    this.#wakeups.close();
    this.#connection.close();
    this.#replication?.close();
  }

  /** Subscribes where that was not done: a store may be used without being opened. */
  #listen(): void {
    if (!this.#wakeups.isOpen && !this.#connection.closed) {
      this.#subscribe();
    }
  }

  /**
   * Sends a command once more that the server refused as too late. The command came in time for its sender, so the
   * estimate of the server's clock was wrong; the refusal has corrected it.
   */
  async #again({ key, limitMs }: HoldRecord, sentAt: number, commandBy: (latest: number) => Command): Promise<unknown> {
    const againAt = performance.now();
    const leftMs = sentAt + limitMs - againAt;
    const reply = await this.#connection.run(commandBy(this.#clock.latest(againAt, leftMs)), leftMs, (answer) => answer);
    if (isLate(reply)) {
      throw new LockStoreError(`Lock "${key}": the command reached Redis too late. The call may be repeated.`, key, { unknown: false });
    }
    return reply;
  }

  #newReplication(): Replication | undefined {
    if (this.#minReplicas === 0) {
      return undefined;
    }
    const store = {
      renewalOf: (holds: readonly HoldRecord[]) => this.#commands.renew(holds),
      withdraw: (hold: HoldRecord, limitMs: number) =>
        this.#connection.run(this.#commands.release({ ...hold, unanswered: true }), limitMs, isOne),
    };
    return new Replication(store, this.#origin, this.#minReplicas, this.#isCluster);
  }

  /** A hold as the servers know it. */
  #named(hold: HoldRecord): HoldRecord {
    return this.#replication?.names.named(hold) ?? hold;
  }

  /** A hold that is released: where the client sends commands again by itself, one may be on its way. */
  #released(hold: HoldRecord): HoldRecord {
    const named = this.#named(hold);
    return this.#connection.sendsAgain && !named.unanswered ? { ...named, unanswered: true } : named;
  }

  /** The answer to a command that was sent at `sentAt`; a grant counts once replicas have confirmed it. */
  #read(reply: unknown, hold: HoldRecord, place: Place | undefined, sentAt: number): AcquireReply | Promise<AcquireReply> {
    if (!Array.isArray(reply)) {
      const granted = { fence: Number.parseInt(String(reply), 10) };
      if (!this.#replication) {
        return granted;
      }
      if (place) {
        this.#wakeups.granted(place);
      }
      return this.#replication.confirm(hold, granted.fence, sentAt).then(() => granted);
    }
    const otherKind = otherKindIn(reply);
    if (otherKind) {
      return Promise.reject(otherKindOfKey(hold.key, otherKind));
    }
    const { remainingMs, holder, permits, rank, joined } = readBusy(reply);
    const recheckMs = place && rank >= 0 ? this.#wakeups.recheckMs(place, rank, joined) : undefined;
    return { remainingMs, holder, permits, recheckMs };
  }

  #connect(): RedisConnection {
    // On a cluster the keys of one command must share a slot, and the keys of several locks hardly ever do.
    return new RedisConnection(this.#origin, this.#isCluster ? undefined : BATCH, (address) => this.#wakeups.follow(address));
  }

  #subscribe(): void {
    this.#wakeups.open(this.#commands.names, this.process, (error) => this.#refused('SUBSCRIBE', error), this.#warn);
  }

  #refused(command: string, error: Error): void {
    const untilThen = `waiters ask for their turn every ${RECHECK_MS.soon} ms, and `;
    warnOfRefusal(error, `Redis refused ${command}`, this.#commands.names, untilThen, this.#warn);
  }
}
