import { randomUUID } from 'node:crypto';
import { LockStoreError } from '../../core/errors.js';
import type {
  AcquireReply,
  ForcedListener,
  HoldRecord,
  LockStore,
  OpenOptions,
  Operator,
  Place,
  StoredLock,
  Tickets,
  TurnListener,
  Turns,
} from '../../core/lock-store.js';
import { DONE_MS, UNDONE_MS } from '../kit/protocol.js';
import { tooManyHolds } from '../kit/refusals.js';
import { ServerClock } from '../kit/server-clock.js';
import { checkPrefix } from '../kit/prefix.js';
import { processName } from '../kit/process-name.js';
import { checkSource, isClient, type RedisSource } from './redis-client.js';
import { COMMAND_MS, RedisConnection } from './redis-connection.js';
import { checkMinReplicas, type RedisLockStoreOptions } from './redis-lock-store.options.js';
import { RedisKeys } from './redis-keys.js';
import { Replication, type Renewal } from './replication.js';
import { toLockError } from './redis-errors.js';
import { isLate, readAnswers, readAttempt, readStored, timeIn } from './replies.js';
import type { Script } from './script.js';
import { ACQUIRE, FORCE_RELEASE, INSPECT, JOIN, LEAVE, PASS, RELEASE, RENEW } from './scripts.js';
import { serverWarnings, tryRights } from './server-check.js';
import { Wakeups } from './wakeups.js';

/**
 * Locks in one Redis server, or in whatever an ioredis `Cluster` or Sentinel client leads to. Whoever waits is told of its
 * turn, first come first served.
 *
 * Given a client, it makes two connections of its own from it (four with `minReplicas`) and never closes or changes that
 * client. Given a URL or options, it makes its connections from them.
 */
export class RedisLockStore implements LockStore, Turns, Tickets, Operator {
  readonly expires = true;
  readonly turns: Turns = this;
  readonly tickets: Tickets = this;
  readonly operator: Operator = this;
  readonly #source: RedisSource;
  readonly #isCluster: boolean;
  readonly #minReplicas: number;
  /** Which store instance this is; shows where it runs. */
  readonly #process = processName();
  readonly #wakeups: Wakeups;
  #keys: RedisKeys;
  #connection: RedisConnection;
  /** Undefined where no replica has to confirm anything. */
  #replication: Replication | undefined;
  #warn: (message: string) => void = () => undefined;
  /** One for all servers of a cluster: where their clocks differ by more than a second, some commands are sent twice. */
  readonly #clock = new ServerClock();

  constructor(source: RedisSource, options: RedisLockStoreOptions = {}) {
    this.#source = checkSource(source);
    this.#minReplicas = checkMinReplicas(options);
    this.#isCluster = isClient(source) && 'isCluster' in source && source.isCluster === true;
    this.#keys = new RedisKeys('lock', this.#isCluster);
    this.#wakeups = new Wakeups(this.#source, this.#isCluster);
    this.#connection = this.#connect();
    this.#replication = this.#newReplication();
  }

  async open({ prefix, warn }: OpenOptions): Promise<void> {
    this.#keys = new RedisKeys(checkPrefix(prefix), this.#isCluster);
    this.#warn = warn;
    if (this.#connection.closed) {
      // Tests make one application after the other from one set of options.
      this.#connection = this.#connect();
      this.#replication = this.#newReplication();
    }
    try {
      this.#subscribe();
      for (const warning of serverWarnings(await this.#connection.info())) {
        warn(warning);
      }
      await tryRights(this, this.#process);
      await this.#connection.tryAsking();
      await this.#connection.publish(this.#keys.wake(this.#process), 'check').catch((error: Error) => this.#refused('PUBLISH', error));
    } catch (error) {
      if (!(error instanceof LockStoreError)) {
        await this.close();
        throw error;
      }
      warn(`${error.detail} Locked calls fail until then.`);
    }
  }

  async acquire(hold: HoldRecord, place?: Place): Promise<AcquireReply> {
    const record = this.#replication && hold;
    const { key, id } = hold;
    const tag = this.#keys.tag(key);
    const keys = [this.#keys.lock(tag), this.#keys.done(tag, id), this.#keys.queue(tag), this.#keys.fence(tag)];
    const reply = this.#read(await this.#runInTime(ACQUIRE, key, keys, this.#argsOf(hold, place), hold.limitMs), place);
    return record ? this.#confirmed(record, reply, place) : reply;
  }

  async exchange(
    hold: HoldRecord,
    next: HoldRecord,
    place: Place,
    mayOvertake: boolean,
  ): Promise<{ released: boolean; reply: AcquireReply | Promise<AcquireReply> }> {
    const { key, id } = hold;
    const record = this.#replication && next;
    const tag = this.#keys.tag(key);
    const keys = [
      this.#keys.lock(tag),
      this.#keys.done(tag, next.id),
      this.#keys.queue(tag),
      this.#keys.fence(tag),
      this.#keys.done(tag, id),
    ];
    const sentAt = performance.now();
    const limitMs = hold.limitMs;
    const args = [...this.#argsOf(next, place), this.#clock.latest(sentAt, limitMs), id, DONE_MS, mayOvertake ? 1 : 0];
    const [answer, nextAnswer] = (await this.#run(PASS, key, keys, args, limitMs)) as readonly unknown[];
    const released = Number(answer) === 1;
    if (nextAnswer instanceof Error) {
      return { released, reply: Promise.reject(toLockError(nextAnswer, key, undefined, PASS)) };
    }
    this.#clock.read(timeIn(nextAnswer), sentAt);
    if (isLate(nextAnswer)) {
      return { released, reply: this.acquire(record ?? next, place) };
    }
    const reply = this.#read(nextAnswer, place);
    return { released, reply: record ? this.#confirmed(record, reply, place) : reply };
  }

  async leave(key: string, name: string): Promise<void> {
    const tag = this.#keys.tag(key);
    const keys = [this.#keys.lock(tag), this.#keys.queue(tag)];
    await this.#run(LEAVE, key, keys, [`${this.#process}:${name}`, this.#keys.wake(''), key], COMMAND_MS);
  }

  async join(hold: HoldRecord): Promise<boolean> {
    const { key, owner, id, fence, ttlMs } = hold;
    const tag = this.#keys.tag(key);
    const keys = [this.#keys.lock(tag), this.#keys.done(tag, id)];
    const reply = Number(await this.#runInTime(JOIN, key, keys, [owner, fence, id, this.#process, Math.ceil(ttlMs)], hold.limitMs));
    if (reply === -1) {
      throw tooManyHolds(key);
    }
    if (reply === 1) {
      await this.#replication?.confirm(hold);
    }
    return reply === 1;
  }

  async renew(holds: readonly HoldRecord[]): Promise<(boolean | undefined)[]> {
    if (this.#isCluster && holds.length > 1) {
      // On a cluster the keys of one command must share a slot.
      return this.#renewEach(holds);
    }
    if (this.#replication) {
      return this.#replication.renew(holds);
    }
    const { keys, args, limitMs } = this.#renewalOf(holds);
    return readAnswers(await this.#run(RENEW, holds[0]?.key ?? '', keys, args, limitMs));
  }

  release(hold: HoldRecord): Promise<boolean> {
    return this.#release(hold, DONE_MS);
  }

  async inspect(key: string): Promise<StoredLock | null> {
    const tag = this.#keys.tag(key);
    return readStored(await this.#run(INSPECT, key, [this.#keys.lock(tag), this.#keys.queue(tag)], [], COMMAND_MS));
  }

  async forceRelease(key: string, fence: number): Promise<boolean> {
    const tag = this.#keys.tag(key);
    const keys = [this.#keys.lock(tag), this.#keys.done(tag, randomUUID()), this.#keys.queue(tag)];
    const args = [fence, DONE_MS, this.#keys.wake(''), key];
    return Number(await this.#run(FORCE_RELEASE, key, keys, args, COMMAND_MS)) === 1;
  }

  onForced(listener: ForcedListener): void {
    this.#wakeups.onForced(listener);
  }

  onTurn(listener: TurnListener): void {
    this.#wakeups.onTurn(listener);
  }

  async close(): Promise<void> {
    this.#wakeups.close();
    this.#connection.close();
    this.#replication?.close();
  }

  #run(script: Script, key: string, keys: readonly string[], args: readonly (string | number)[], limitMs: number): Promise<unknown> {
    if (!this.#wakeups.isOpen && !this.#connection.closed) {
      this.#subscribe();
    }
    return this.#connection.run(script, key, keys, args, limitMs);
  }

  /**
   * Runs ACQUIRE or JOIN, which the server refuses where they come later than their sender waits for the reply. Refused in time,
   * they were judged by what the server's clock had said before: they are sent once more, by what it says now.
   */
  async #runInTime(
    script: Script,
    key: string,
    keys: readonly string[],
    args: readonly (string | number)[],
    limitMs: number,
  ): Promise<unknown> {
    const sentAt = performance.now();
    const reply = await this.#run(script, key, keys, [...args, this.#clock.latest(sentAt, limitMs)], limitMs);
    if (script === ACQUIRE || isLate(reply)) {
      this.#clock.read(timeIn(reply), sentAt);
    }
    if (!isLate(reply)) {
      return reply;
    }
    const againAt = performance.now();
    const leftMs = sentAt + limitMs - againAt;
    const again = await this.#run(script, key, keys, [...args, this.#clock.latest(againAt, leftMs)], leftMs);
    if (isLate(again)) {
      throw new LockStoreError(`Lock "${key}": the command reached Redis too late. The call may be repeated.`, key, { unknown: false });
    }
    return again;
  }

  #newReplication(): Replication | undefined {
    if (this.#minReplicas === 0) {
      return undefined;
    }
    const store = {
      renewalOf: (holds: readonly HoldRecord[]) => this.#renewalOf(holds),
      undo: (hold: HoldRecord) => this.#release(hold, UNDONE_MS),
    };
    return new Replication(store, this.#source, this.#minReplicas, this.#isCluster);
  }

  async #confirmed(hold: HoldRecord, reply: AcquireReply, place: Place | undefined): Promise<AcquireReply> {
    if (reply.fence !== undefined) {
      if (place) {
        this.#wakeups.granted(place);
      }
      await this.#replication?.confirm({ ...hold, fence: reply.fence });
    }
    return reply;
  }

  #renewalOf(holds: readonly HoldRecord[]): Renewal {
    return {
      keys: holds.map((hold) => this.#keys.lock(this.#keys.tag(hold.key))),
      args: holds.flatMap(({ owner, fence, id, ttlMs, lingering }) => [owner, fence, id, Math.ceil(ttlMs), lingering ? 1 : 0]),
      limitMs: Math.min(...holds.map((hold) => hold.limitMs)),
    };
  }

  async #release(hold: HoldRecord, doneMs: number): Promise<boolean> {
    const { key, id } = hold;
    const tag = this.#keys.tag(key);
    const keys = [this.#keys.lock(tag), this.#keys.done(tag, id), this.#keys.queue(tag)];
    return Number(await this.#run(RELEASE, key, keys, [id, doneMs, this.#keys.wake(''), key], hold.limitMs)) === 1;
  }

  /** What ACQUIRE is told of a hold and its place. */
  #argsOf({ key, owner, id, ttlMs, by }: HoldRecord, place: Place | undefined): (string | number)[] {
    const polls = this.#wakeups.areCertain ? 0 : 0.5;
    const member = place ? `${this.#process}:${place.name}` : '';
    return [owner, id, this.#process, Math.ceil(ttlMs), by, member, polls, this.#keys.wake(''), key];
  }

  #read(reply: unknown, place: Place | undefined): AcquireReply {
    const answer = readAttempt(reply);
    if (answer.fence !== undefined) {
      return answer;
    }
    const { remainingMs, holder, rank, joined } = answer;
    const recheckMs = place && rank >= 0 ? this.#wakeups.recheckMs(place, rank, joined) : undefined;
    return { remainingMs, holder, recheckMs };
  }

  /** A shard that is away must not take the locks of the others along. */
  async #renewEach(holds: readonly HoldRecord[]): Promise<(boolean | undefined)[]> {
    const answers = await Promise.allSettled(holds.map((hold) => this.renew([hold])));
    const failed = answers.filter((answer) => answer.status === 'rejected');
    if (failed.length === answers.length) {
      throw failed[0]?.reason;
    }
    return answers.map((answer) => (answer.status === 'fulfilled' ? answer.value[0] : undefined));
  }

  #connect(): RedisConnection {
    return new RedisConnection(this.#source, (address) => this.#wakeups.follow(address));
  }

  #subscribe(): void {
    const channel = this.#keys.wake(this.#process);
    this.#wakeups.open(
      channel,
      (error) => this.#refused('SUBSCRIBE', error),
      (message) => this.#warn(message),
    );
  }

  #refused(command: string, error: Error): void {
    // A connection that broke, or was closed meanwhile, is no refusal.
    if (error.name !== 'ReplyError') {
      return;
    }
    this.#warn(
      `Redis refused ${command} on ${this.#keys.wake('*')}: ${error.message}. ` +
        'Waiters look for their turn every 300 ms, and a forced release is noticed at the next renewal.',
    );
  }
}
