import { randomUUID } from 'node:crypto';
import { LockConfigurationError, LockStoreError, type LockError } from '../core/errors.js';
import type { AcquireReply, ForcedListener, HoldRecord, LockStore, OpenOptions, StoredLock } from '../core/lock-store.js';
import { CommandTimeouts } from './command-timeouts.js';
import { checkSource, isClient, makeConnection, reconnect, type Connection, type RedisSource } from './redis-client.js';
import { setupError, toLockError } from './redis-errors.js';
import { checkPrefix, RedisKeys } from './redis-keys.js';
import { RedisSubscriber } from './redis-subscriber.js';
import { ACQUIRE, FORCE_RELEASE, INSPECT, JOIN, RELEASE, RENEW, type Script } from './scripts.js';
import { serverWarnings, tryRights } from './server-check.js';

/** How long a released hold is remembered, so that a duplicate of its commands answers as the first did. */
const DONE_MS = 10_000;
/** The longest time for a command that belongs to no lease. */
const COMMAND_MS = 1_000;

/**
 * Locks in one Redis server, or in whatever an ioredis `Cluster` or Sentinel client leads to.
 *
 * Given a client, it makes two connections of its own from it and never closes or changes that client. Given a URL or
 * options, it makes its connections from them.
 */
export class RedisLockStore implements LockStore {
  readonly name = 'redis';
  readonly expires = true;
  readonly #source: RedisSource;
  readonly #isCluster: boolean;
  readonly #process = randomUUID();
  readonly #forced: ForcedListener[] = [];
  readonly #timeouts = new CommandTimeouts(() => this.#reconnect());
  #keys: RedisKeys;
  #subscriber: RedisSubscriber | undefined;
  #opening: Promise<Connection> | undefined;
  #connection: Connection | undefined;
  #connectionError: Error | undefined;
  #setupRefusal: Error | undefined;
  #warn: (message: string) => void = () => undefined;
  #closed = false;

  constructor(source: RedisSource) {
    this.#source = checkSource(source);
    this.#isCluster = isClient(source) && 'isCluster' in source && source.isCluster === true;
    this.#keys = new RedisKeys('lock', this.#isCluster);
  }

  async open({ prefix, warn }: OpenOptions): Promise<void> {
    this.#keys = new RedisKeys(checkPrefix(prefix), this.#isCluster);
    this.#warn = warn;
    if (this.#closed) {
      // Tests make one application after the other from one set of options.
      this.#closed = false;
      this.#opening = undefined;
      this.#connection = undefined;
      this.#connectionError = undefined;
      this.#setupRefusal = undefined;
    }
    try {
      const connection = await (this.#connection ?? this.#open());
      const info = await this.#timeouts.bound(connection.info(), COMMAND_MS).catch((error: unknown) => this.#refusedInfo(error));
      for (const warning of serverWarnings(info)) {
        warn(warning);
      }
      await tryRights(this, this.#process);
    } catch (error) {
      if (!(error instanceof LockStoreError)) {
        await this.close();
        throw error;
      }
      warn(`${error.message} Locked calls fail until then.`);
    }
  }

  async acquire(hold: HoldRecord): Promise<AcquireReply> {
    const { key, owner, id, ttlMs, by } = hold;
    const keys = [this.#keys.lock(key), this.#keys.done(key, id), this.#keys.fence(key)];
    const reply = (await this.#run(ACQUIRE, key, keys, [owner, id, this.#process, Math.ceil(ttlMs), by], ttlMs)) as unknown[];
    if (Number(reply[0]) === 1) {
      return { fence: Number(reply[1]) };
    }
    return { remainingMs: Number(reply[1]), holder: { by: String(reply[2]), heldMs: Number(reply[3]) } };
  }

  async join(hold: HoldRecord): Promise<boolean> {
    const { key, owner, id, fence, ttlMs } = hold;
    const keys = [this.#keys.lock(key), this.#keys.done(key, id)];
    return Number(await this.#run(JOIN, key, keys, [owner, fence, id, this.#process, Math.ceil(ttlMs)], ttlMs)) === 1;
  }

  async renew(holds: readonly HoldRecord[]): Promise<(boolean | undefined)[]> {
    if (this.#isCluster && holds.length > 1) {
      // On a cluster the keys of one command must share a slot.
      return this.#renewEach(holds);
    }
    const keys = holds.map((hold) => this.#keys.lock(hold.key));
    const args = holds.flatMap(({ owner, fence, id, ttlMs }) => [owner, fence, id, Math.ceil(ttlMs)]);
    const shortest = Math.min(...holds.map((hold) => hold.ttlMs));
    const replies = (await this.#run(RENEW, holds[0]?.key ?? '', keys, args, shortest)) as unknown[];
    return replies.map((reply) => Number(reply) === 1);
  }

  async release(hold: HoldRecord): Promise<boolean> {
    const { key, id, ttlMs } = hold;
    const keys = [this.#keys.lock(key), this.#keys.done(key, id)];
    return Number(await this.#run(RELEASE, key, keys, [id, DONE_MS], ttlMs)) === 1;
  }

  async inspect(key: string): Promise<StoredLock | null> {
    const reply = (await this.#run(INSPECT, key, [this.#keys.lock(key)], [], Infinity)) as unknown[];
    if (reply.length === 0) {
      return null;
    }
    const [fence, holds, ttlMs, since, by] = reply;
    return { fence: Number(fence), holds: Number(holds), ttlMs: Number(ttlMs), since: new Date(Number(since)), by: String(by) };
  }

  async forceRelease(key: string, fence: number): Promise<boolean> {
    const keys = [this.#keys.lock(key), this.#keys.done(key, randomUUID())];
    return Number(await this.#run(FORCE_RELEASE, key, keys, [fence, key, this.#keys.wake(''), DONE_MS], Infinity)) === 1;
  }

  onForced(listener: ForcedListener): void {
    this.#forced.push(listener);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#timeouts.stop();
    this.#subscriber?.close();
    this.#connection?.disconnect();
  }

  /** Runs a script within min(ttl / 4, 1 s); rejects with a lock error. */
  async #run(script: Script, key: string, keys: readonly string[], args: readonly (string | number)[], ttlMs: number): Promise<unknown> {
    const limitMs = Math.min(ttlMs / 4, COMMAND_MS);
    try {
      this.#refuseClosed();
      const connection = this.#connection ?? (await this.#open());
      if (this.#setupRefusal) {
        throw setupError(this.#setupRefusal);
      }
      try {
        return await this.#timeouts.bound(connection.evalsha(script.sha, keys.length, ...keys, ...args), limitMs);
      } catch (error) {
        if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) {
          throw error;
        }
        return await this.#timeouts.bound(connection.eval(script.source, keys.length, ...keys, ...args), limitMs);
      }
    } catch (error) {
      throw this.#lockError(error, key, script);
    }
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

  #open(): Promise<Connection> {
    return (this.#opening ??= this.#makeConnections());
  }

  async #makeConnections(): Promise<Connection> {
    const channel = this.#keys.wake(this.#process);
    this.#subscriber = new RedisSubscriber(
      channel,
      (message) => this.#heard(message),
      (error) =>
        this.#warn(
          `Redis refused SUBSCRIBE on ${this.#keys.wake('*')}: ${error.message}. A forced release is noticed at the next renewal.`,
        ),
    );
    this.#refuseClosed();
    const connection = await makeConnection(this.#source, { enableOfflineQueue: true, maxRetriesPerRequest: 0 });
    this.#refuseClosed();
    this.#connection = connection;
    connection.on('connect', () => {
      // What an earlier attempt was refused says nothing of this one.
      this.#connectionError = undefined;
    });
    connection.on('ready', () => {
      // ioredis goes on where SELECT is refused, and would keep the locks in another database.
      this.#setupRefusal = this.#connectionError?.name === 'ReplyError' ? this.#connectionError : undefined;
      this.#connectionError = undefined;
      // Commands wait for the first connection only: later ones fail at once, and are sent again while the caller waits.
      connection.options.enableOfflineQueue = false;
    });
    connection.on('error', (error: Error) => {
      this.#connectionError = error;
    });
    connection.connect().catch(() => undefined);
    await this.#subscriber.open(this.#source);
    this.#refuseClosed();
    return connection;
  }

  #refuseClosed(): void {
    if (this.#closed) {
      throw new LockConfigurationError('RedisLockStore was closed. Make a new one for new locks.');
    }
  }

  /** A connection on which nothing is answered may be half open; another one is not. */
  #reconnect(): void {
    if (this.#connection?.status === 'ready') {
      reconnect(this.#connection);
    }
  }

  #heard(message: string): void {
    const [, fence, key] = /^forced (\d+) (.*)$/s.exec(message) ?? [];
    if (key !== undefined) {
      for (const listener of this.#forced) {
        listener(key, Number(fence));
      }
    }
  }

  /** INFO is a right the store can do without. */
  #refusedInfo(error: unknown): string {
    if (error instanceof Error && error.message.startsWith('NOPERM')) {
      return '';
    }
    throw this.#lockError(error, '');
  }

  #lockError(error: unknown, key: string, script?: Script): LockError {
    return error instanceof LockConfigurationError ? error : toLockError(error, key, this.#connectionError, script);
  }
}
