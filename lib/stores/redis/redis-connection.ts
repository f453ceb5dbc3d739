import { LockConfigurationError, type LockError } from '../../core/errors.js';
import { LONGEST_COMMAND_MS } from '../../core/lease-time.js';
import { CommandTimeouts } from './command-timeouts.js';
import { Cork } from './cork.js';
import { addressOf, keepConnected, makeConnection, reconnect, type Connection, type RedisSource } from './redis-client.js';
import { isDemoted, isUnreachable, NO_CONNECTION, setupError, toLockError } from './redis-errors.js';
import type { Script } from './script.js';
import { sendScript } from './send-script.js';

/**
 * With Sentinel, a deposed master answers until it is told, which may be long after the failover, so the sentinels tell of it.
 * ioredis prints an error for each attempt to reach a sentinel that is dead, so it makes few.
 */
const SENTINEL_WATCH = {
  failoverDetector: true,
  sentinelReconnectStrategy: (attempts: number) => (attempts < 6 ? attempts * 1_000 : null),
} as const;
/** For how long an error of a node explains why commands are not answered, in milliseconds: later attempts have errors of their own. */
const NODE_ERROR_MS = 2_000;
/** The time limit of a command that belongs to no lease. */
export const COMMAND_MS = LONGEST_COMMAND_MS;

/** The reply to a script, and how many replicas confirmed within how many ms that they have what it wrote. */
export interface Replicated {
  readonly reply: unknown;
  readonly confirmed: number;
  readonly withinMs: number;
}

/** The connection for a store's commands: runs scripts, each within its time, and rejects with lock errors. */
export class RedisConnection {
  readonly #source: RedisSource;
  /** Is told which server this connection has come to. */
  readonly #onReady: (address: string) => void;
  readonly #cork = new Cork();
  readonly #timeouts = new CommandTimeouts(() => this.#reconnect());
  #opening: Promise<Connection> | undefined;
  #connection: Connection | undefined;
  #connectionError: Error | undefined;
  /** Why a node of a cluster could not be reached, and when that was. */
  #nodeError: { readonly error: Error; readonly at: number } | undefined;
  #setupRefusal: Error | undefined;
  #wasReady = false;
  #closed = false;

  constructor(source: RedisSource, onReady: (address: string) => void = () => undefined) {
    this.#source = source;
    this.#onReady = onReady;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Runs a script; rejects where there is no reply within `limitMs`. */
  run(script: Script, key: string, keys: readonly string[], args: readonly (string | number)[], limitMs: number): Promise<unknown> {
    return this.#run(script, key, keys, args, limitMs, 0, 0);
  }

  /**
   * Runs a script that writes, and waits until so many replicas have what it wrote, for half as long as `run` may take: the
   * answer still comes in time. Nothing else is answered on the connection meanwhile.
   */
  async runOnReplicas(
    script: Script,
    key: string,
    keys: readonly string[],
    args: readonly (string | number)[],
    limitMs: number,
    replicas: number,
  ): Promise<Replicated> {
    // For WAIT, 0 is for ever.
    const withinMs = Math.max(1, Math.floor(limitMs / 2));
    const [reply, confirmed] = (await this.#run(script, key, keys, args, limitMs, replicas, withinMs)) as readonly unknown[];
    return { reply, confirmed: Number(confirmed), withinMs };
  }

  /** What the server tells of itself; empty where that is forbidden, which the store can do without. */
  async info(): Promise<string> {
    try {
      return await this.#timeouts.bound((await this.open()).info(), COMMAND_MS);
    } catch (error) {
      if (error instanceof Error && error.message.startsWith('NOPERM')) {
        return '';
      }
      throw this.#lockError(error, '');
    }
  }

  /** Rejects where the user may not publish. */
  async publish(channel: string, message: string): Promise<void> {
    await this.#timeouts.bound((await this.open()).publish(channel, message), COMMAND_MS);
  }

  /**
   * Rejects where the user may not go after a slot of a cluster that moves. Found out in the midst of it, the refusal would end
   * the process: ioredis does not handle it.
   */
  async tryAsking(): Promise<void> {
    try {
      const connection = await this.open();
      if (connection.isCluster) {
        // PING, allowed or not, ends what ASKING begins: no command on a key may come next.
        const [asking] = (await this.#timeouts.bound(connection.pipeline().asking().ping().exec(), COMMAND_MS)) ?? [];
        if (asking?.[0]) {
          throw asking[0];
        }
      }
    } catch (error) {
      throw this.#lockError(error, '');
    }
  }

  open(): Promise<Connection> {
    return (this.#opening ??= this.#open());
  }

  close(): void {
    this.#closed = true;
    this.#timeouts.stop();
    this.#connection?.disconnect();
  }

  async #run(
    script: Script,
    key: string,
    keys: readonly string[],
    args: readonly (string | number)[],
    limitMs: number,
    replicas: number,
    withinMs: number,
  ): Promise<unknown> {
    try {
      this.#refuseClosed();
      const connection = this.#connection ?? (await this.open());
      if (this.#setupRefusal) {
        throw setupError(this.#setupRefusal);
      }
      if (this.#wasReady && connection.isCluster && connection.status !== 'ready') {
        throw new Error(NO_CONNECTION);
      }
      if (this.#timeouts.busy) {
        this.#cork.hold(connection.stream);
      }
      const sentAt = performance.now();
      try {
        return await this.#timeouts.bound(sendScript(connection, 'evalsha', script.sha, keys, args, replicas, withinMs), limitMs, sentAt);
      } catch (error) {
        if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) {
          throw error;
        }
        // One limit for both: the caller asked once.
        return await this.#timeouts.bound(sendScript(connection, 'eval', script.source, keys, args, replicas, withinMs), limitMs, sentAt);
      }
    } catch (error) {
      if (isDemoted(error)) {
        // A master that became a replica: another connection may find the new one. What is not sent until then has to say why.
        this.#connectionError = new Error(error.message);
        this.#reconnect();
      }
      throw this.#lockError(error, key, script);
    }
  }

  async #open(): Promise<Connection> {
    const connection = await makeConnection(this.#source, { enableOfflineQueue: true, maxRetriesPerRequest: 0, ...SENTINEL_WATCH });
    this.#refuseClosed();
    this.#connection = connection;
    connection.on('connect', () => {
      // What an earlier attempt was refused says nothing of this one.
      if (this.#connectionError?.name === 'ReplyError') {
        this.#connectionError = undefined;
      }
    });
    connection.on('ready', () => {
      // ioredis goes on where SELECT is refused, and would keep the locks in another database.
      this.#setupRefusal = this.#connectionError?.name === 'ReplyError' ? this.#connectionError : undefined;
      this.#connectionError = undefined;
      // Commands wait for the first connection only: later ones fail at once, and are sent again while the caller waits.
      // Not so for the nodes of a cluster, each of which is connected to when it is first needed.
      this.#wasReady = true;
      connection.options.enableOfflineQueue = connection.isCluster === true;
      this.#onReady(addressOf(connection));
    });
    connection.on('node error', (error: Error) => {
      // That a connection was closed is what follows from its error, and says nothing more.
      if (!isUnreachable(error)) {
        this.#nodeError = { error, at: performance.now() };
      }
    });
    connection.on('error', (error: Error) => {
      this.#connectionError = error;
    });
    keepConnected(connection, () => this.#closed);
    return connection;
  }

  #refuseClosed(): void {
    if (this.#closed) {
      throw new LockConfigurationError('RedisLockStore was closed. Make a new one for new locks.');
    }
  }

  /** Another connection is not half open, or leads to a server that may write. */
  #reconnect(): void {
    if (this.#connection?.status === 'ready') {
      reconnect(this.#connection);
    }
  }

  #lockError(error: unknown, key: string, script?: Script): LockError {
    if (error instanceof LockConfigurationError) {
      return error;
    }
    return toLockError(error, key, (isUnreachable(error) && this.#nodeErrorOfLate()) || this.#connectionError, script);
  }

  /** One that is over must not be blamed later: a password that was wrong for a while would end calls that may wait. */
  #nodeErrorOfLate(): Error | undefined {
    return this.#nodeError && performance.now() - this.#nodeError.at < NODE_ERROR_MS ? this.#nodeError.error : undefined;
  }
}
