import { setTimeout as sleep } from 'node:timers/promises';
import { ListenConnection, type ListeningClient } from './listen-connection.js';

/** How long a new connection is trusted when a message seems to be missing, in milliseconds. */
const TRUST_MS = 5_000;
/**
 * The pause before the next connection, in milliseconds: the longest, and after a connection that delivered nothing.
 */
const PAUSE_MS = { longest: 1_000, undelivered: 30_000 } as const;

/** The part of its store that a listener needs, and the methods that it reports to. */
interface ListenerContext {
  /** Makes a client that has not connected yet. */
  connect(): ListeningClient;
  /** Sends a message to a channel by another connection. */
  notify(channel: string, message: string): Promise<unknown>;
  received(message: string): void;
  /** Messages arrive from now on, or no longer: some may have been missed. */
  changed(): void;
  /** The server accepts the subscription and delivers nothing. */
  undelivered(): void;
  /** The connection was not made, or has ended. */
  failed(error: Error): void;
}

/**
 * Receives the messages of other processes to this one, over a connection that is made anew whenever it ends. Messages
 * are hints: a lost message costs time, and nothing else. While it receives, it holds the advisory lock that stands for
 * its process.
 */
export class Listener {
  readonly #channels: readonly [string, string];
  readonly #presence: string;
  readonly #process: string;
  readonly #context: ListenerContext;
  readonly #closing = new AbortController();
  #connection: ListenConnection | undefined;
  #acknowledged = false;
  #changedAt = 0;

  /**
   * `everybody` is the channel of all processes. `presence` is the SQL of the number of the advisory lock; `$1` is the
   * process.
   */
  constructor(process: string, everybody: string, presence: string, context: ListenerContext) {
    this.#channels = [channelOf(process), everybody];
    this.#process = process;
    this.#presence = presence;
    this.#context = context;
  }

  /** Whether messages reach this process, as far as it knows: a message that it sent to itself has arrived. */
  get acknowledged(): boolean {
    return this.#acknowledged;
  }

  /** Listens until it is closed; resolves when the first connection receives messages, or is known not to. */
  open(): Promise<void> {
    return new Promise((resolve) => {
      void this.#run(resolve);
    });
  }

  /**
   * A message that was sent did not arrive: the connection may be half open, and is made anew. One that is young is
   * trusted, since the message may have been sent before it listened.
   */
  distrust(): void {
    if (this.#acknowledged && performance.now() - this.#changedAt > TRUST_MS) {
      this.#end();
    }
  }

  close(): void {
    this.#closing.abort();
    this.#end();
  }

  /** Connects, and again whenever the connection ends. `tried` is called when the outcome of a connection is known. */
  async #run(tried: () => void): Promise<void> {
    for (let failures = 0; !this.#closing.signal.aborted; failures++) {
      let pauseMs: number = Math.min(failures * 50, PAUSE_MS.longest);
      try {
        if (await this.#receives()) {
          failures = 0;
          this.#change(true);
          tried();
          await this.#connection?.stayAlive();
        } else {
          pauseMs = PAUSE_MS.undelivered;
          this.#context.undelivered();
        }
      } catch (error) {
        if (!this.#closing.signal.aborted) {
          this.#context.failed(error as Error);
        }
      }
      this.#end();
      tried();
      await sleep(pauseMs, undefined, { signal: this.#closing.signal }).catch(() => undefined);
    }
  }

  /** Makes a connection; whether messages arrive on it. */
  async #receives(): Promise<boolean> {
    const connection = new ListenConnection(this.#context.connect(), this.#channels, (message) => this.#context.received(message));
    this.#connection = connection;
    await connection.subscribe();
    const delivers = await connection.delivers((channel, message) => this.#context.notify(channel, message));
    if (delivers) {
      await connection.ask(`SELECT pg_advisory_lock_shared(${this.#presence})`, [this.#process]);
    }
    return delivers;
  }

  #change(acknowledged: boolean): void {
    if (this.#acknowledged !== acknowledged) {
      this.#acknowledged = acknowledged;
      this.#changedAt = performance.now();
      if (!this.#closing.signal.aborted) {
        this.#context.changed();
      }
    }
  }

  #end(): void {
    const connection = this.#connection;
    this.#connection = undefined;
    this.#change(false);
    connection?.end();
  }
}

/** The channel of a process. Its name has at most 63 bytes, so it leaves out the host. */
export function channelOf(process: string): string {
  return `distributed_lock:${process.split(':').slice(-2).join(':')}`;
}
