import { LockConfigurationError, type LockError } from '../../core/words/errors.js';
import { Batches } from '../../kit/batches.js';
import { NoReply } from '../../kit/no-reply.js';
import type { BatchScript } from '../scripts/batch-script.js';
import { CommandTimeouts, OpenCommand } from './command-timeouts.js';
import { ConnectionFailures } from './connection-failures.js';
import type { Connection } from './connection.js';
import { reconnect } from './handshake.js';
import { addressOf, keepConnected, makeConnection } from './redis-client.js';
import { Demotions } from './demotions.js';
import type { RedisOrigin } from './redis-source.js';
import { PlainCommands } from './plain-commands.js';
import { isDemoted, isForbidden, isUnknownScript, NO_CONNECTION, notConnectedWithin } from './redis-errors.js';
import type { Command } from '../scripts/script.js';
import { sendConfirmed, type Confirmation } from './send-confirmed.js';

/**
 * With Sentinel, a deposed master answers until it learns of the failover, which may be long afterwards, so the
 * sentinels are asked. ioredis prints an error for each attempt to reach a sentinel that is dead, so it makes few
 * attempts.
 */
const SENTINEL_WATCH = {
  failoverDetector: true,
  sentinelReconnectStrategy: (attempts: number) => (attempts < 6 ? attempts * 1_000 : null),
} as const;
/** After how many milliseconds a connection is made again that the server refused to set up. */
const AGAIN_MS = 1_000;

/** A script that is to run, by itself or in a batch. */
class Run extends OpenCommand {
  readonly command: Command;

  constructor(
    command: Command,
    timeouts: CommandTimeouts,
    limitMs: number,
    resolve: (reply: unknown) => void,
    reject: (error: unknown) => void,
  ) {
    super(timeouts, limitMs, resolve, reject);
    this.command = command;
  }
}

/** The connection for a store's commands: runs scripts, each within its time, and rejects with lock errors. */
export class RedisConnection {
  readonly #origin: RedisOrigin;
  /** Is called with the address of the server that this connection has come to. */
  readonly #onReady: (address: string) => void;
  /** The scripts that can be in a batch; undefined where every command goes alone. */
  readonly #batch: BatchScript | undefined;
  /** The class of the store that it belongs to, as messages name it. */
  readonly #store: string;
  readonly #batches = new Batches<Run>((requests) => this.#sendTogether(requests));
  readonly #timeouts = new CommandTimeouts(() => this.#reconnect());
  readonly #failures = new ConnectionFailures();
  readonly #demotions = new Demotions();
  readonly plain = new PlainCommands(
    () => this.#opened(),
    (limitMs) => this.#readyForPlain(limitMs),
    this.#timeouts,
    this.#failures,
  );
  #opening: Promise<Connection> | undefined;
  #connection: Connection | undefined;
  #wasReady = false;
  /** Makes a connection anew that the server refused to set up. */
  #again: NodeJS.Timeout | undefined;
  /**
   * Limits the waits for the first connection. On a promise that all callers share, callers that gave up would stay
   * until the connection is made.
   */
  readonly #early = new CommandTimeouts(() => undefined);
  #closed = false;

  constructor(origin: RedisOrigin, batch?: BatchScript, onReady: (address: string) => void = () => undefined, store = 'RedisLockStore') {
    this.#origin = origin;
    this.#batch = batch;
    this.#onReady = onReady;
    this.#store = store;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Whether its client sends a command again whose reply was lost, and does not say so. */
  get sendsAgain(): boolean {
    return this.#failures.sendsAgain;
  }

  /**
   * Runs a script; resolves with the result of `read` on the reply, and rejects where there is no reply within
   * `limitMs`.
   */
  run<T>(command: Command, limitMs: number, read: (reply: unknown) => T | Promise<T>, confirmation?: Confirmation): Promise<T> {
    const connection = this.#connection;
    if (!connection || (!this.#wasReady && queuesForEver(connection))) {
      return this.#runOnceOpen(command, limitMs, read, confirmation);
    }
    return new Promise((resolve, reject) => {
      const answer = (reply: unknown): void => {
        try {
          resolve(read(reply));
        } catch (error) {
          reject(error);
        }
      };
      const refuse = (error: unknown): void => reject(this.#explained(error, command));
      try {
        this.#refuseUnusable(connection);
        const { busy } = this.#timeouts;
        const run = new Run(command, this.#timeouts, limitMs, answer, refuse);
        // Where nothing is on its way, nothing is likely to come with it.
        if (busy && !confirmation && this.#batch?.takes(command)) {
          this.#batches.add(run, run);
          return;
        }
        if (busy) {
          this.#batches.flush();
        }
        this.#sendAlone(connection, 'evalsha', run, confirmation);
      } catch (error) {
        refuse(error);
      }
    });
  }

  async #runOnceOpen<T>(
    command: Command,
    limitMs: number,
    read: (reply: unknown) => T | Promise<T>,
    confirmation: Confirmation | undefined,
  ): Promise<T> {
    const startedAt = performance.now();
    try {
      await this.#ready(limitMs);
    } catch (error) {
      throw this.#explained(error, command);
    }
    return this.run(command, limitMs - (performance.now() - startedAt), read, confirmation);
  }

  /** The connection, once commands that are given to it are sent, or fail at once. */
  async #ready(limitMs: number): Promise<Connection> {
    this.#refuseUnusable();
    let connection = this.#connection;
    if (!connection || (!this.#wasReady && queuesForEver(connection))) {
      await this.#early.bound(this.#toSend(), limitMs).catch((error: unknown) => {
        throw error instanceof NoReply ? notConnectedWithin(limitMs) : error;
      });
      connection = await this.#opened();
    }
    this.#refuseUnusable(connection);
    return connection;
  }

  /**
   * The connection for a command that runs no script. Making a client is not within the limit: it takes long where a
   * process makes many.
   */
  async #readyForPlain(limitMs: number): Promise<Connection> {
    // One turn at most: a message that is sent before the store closes has to be on its way by then.
    if (!this.#connection) {
      await this.#opened();
    }
    return this.#ready(limitMs);
  }

  /**
   * Never resolves before the first connection where the client would keep the commands that it is given: `#early` ends
   * the waiting.
   */
  async #toSend(): Promise<void> {
    const connection = await this.#opened();
    if (!this.#wasReady && queuesForEver(connection)) {
      await new Promise(() => undefined);
    }
  }

  /**
   * Sends a script by itself; once more, with its source, where the server does not know it and the caller still waits.
   */
  #sendAlone(connection: Connection, how: 'evalsha' | 'eval', run: Run, confirmation: Confirmation | undefined): void {
    const { command } = run;
    const reply = confirmation ? sendConfirmed(connection, how, command, confirmation) : send(connection, how, command);
    reply.then(
      (answer) => run.answered(answer),
      (error: unknown) => {
        if (how === 'evalsha' && run.isOpen && isUnknownScript(error)) {
          this.#sendAlone(connection, 'eval', run, confirmation);
        } else {
          run.failed(error);
        }
      },
    );
  }

  #explained(error: unknown, { key, script }: Command): LockError {
    if (isDemoted(error)) {
      // A master that became a replica: another connection may find the new master. Commands until then fail for this
      // reason.
      this.#failures.note(new Error(error.message));
      if (this.#demotions.refused()) {
        this.#reconnect();
      }
    }
    return this.#failures.explain(error, key, script);
  }

  #opened(): Promise<Connection> {
    return (this.#opening ??= this.#open());
  }

  close(): void {
    this.#closed = true;
    // Requests that were made before are still sent.
    this.#batches.flush();
    this.#timeouts.stop();
    this.#early.stop();
    this.#connection?.disconnect();
  }

  /**
   * Sends requests as one script; each request has its own limit. A script that the server refused before it ran is
   * sent once more: whole where the script was not known, and in parts where the keys of one request may be the reason.
   */
  async #sendTogether(requests: readonly Run[], how: 'evalsha' | 'eval' = 'evalsha'): Promise<readonly unknown[]> {
    const connection = this.#connection as Connection;
    const commands = requests.map(({ command }) => command);
    const [first] = commands as [Command];
    try {
      if (commands.length === 1) {
        return [await send(connection, how, first)];
      }
      return (await send(connection, how, (this.#batch as BatchScript).command(commands))) as readonly unknown[];
    } catch (error) {
      // Requests whose callers have given up meanwhile are left out.
      const now = performance.now();
      const waiting = requests.filter(({ endsAt }) => now < endsAt);
      let replies: readonly unknown[];
      if (commands.length > 1 && isForbidden(error)) {
        replies = waiting.map((request) => this.#sendTogether([request]).then(([reply]) => reply));
      } else if (how === 'evalsha' && isUnknownScript(error)) {
        replies = waiting.length > 0 ? await this.#sendTogether(waiting, 'eval') : [];
      } else {
        throw error;
      }
      return requests.map((request) => (waiting.includes(request) ? replies[waiting.indexOf(request)] : request.outOfTime));
    }
  }

  async #open(): Promise<Connection> {
    const connection = await makeConnection(this.#origin, { enableOfflineQueue: true, maxRetriesPerRequest: 0, ...SENTINEL_WATCH });
    this.#refuseUnusable();
    this.#connection = connection;
    this.#failures.watch(connection);
    connection.on('ready', () => {
      if (this.#closed) {
        // The last reply of the handshake was on its way.
        return;
      }
      // Commands wait for the first connection only: later commands fail at once, and are sent again while the caller
      // waits. Not so for the nodes of a cluster, each of which is connected to when it is first needed.
      this.#wasReady = true;
      if (this.#failures.setupRefusal) {
        // The setup may be granted by then, or the reason has passed. Not where another connection has been set up
        // meanwhile.
        clearTimeout(this.#again);
        this.#again = setTimeout(() => this.#failures.setupRefusal && this.#reconnect(), AGAIN_MS).unref();
      }
      connection.options.enableOfflineQueue = connection.isCluster === true;
      this.#early.answerAll();
      this.#onReady(addressOf(connection));
    });
    keepConnected(connection, () => this.#closed);
    return connection;
  }

  /**
   * Throws where the store was closed, where the connection leads to another database or user than the one asked for,
   * and where the client knows of no node of its cluster.
   */
  #refuseUnusable(connection?: Connection): void {
    if (this.#closed) {
      throw new LockConfigurationError(`${this.#store} was closed. Make a new one for new locks.`);
    }
    if (this.#failures.setupRefusal) {
      throw this.#failures.setupRefusal;
    }
    if (connection?.isCluster && connection.status !== 'ready') {
      // The client would keep commands until it knows of nodes again, however late that is.
      throw new Error(NO_CONNECTION);
    }
  }

  /** Another connection is not half open, or leads to a server that may write. */
  #reconnect(): void {
    if (this.#connection?.status === 'ready') {
      reconnect(this.#connection);
    }
  }
}

/**
 * Whether ioredis keeps commands until it is connected for the first time, however long that takes: commands of callers
 * that have given up would fill its memory, and be carried out then.
 */
function queuesForEver({ isCluster, queuesForEver: byItself = false, options }: Connection): boolean {
  return byItself || isCluster === true || options.sentinels != null;
}

function send(connection: Connection, how: 'evalsha' | 'eval', { script, parameters }: Command): Promise<unknown> {
  return connection.call(how, how === 'evalsha' ? script.sha : script.source, ...parameters);
}
