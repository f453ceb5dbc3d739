import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

const PING_MS = 5_000;
/** How long a connection may take to answer, in milliseconds. */
const SILENCE_MS = 2_000;
/** The pause before a connection is made anew, in milliseconds: the longest, and after one that delivered nothing. */
const PAUSE_MS = { longest: 1_000, deaf: 30_000 } as const;

/** What the listener uses of a `pg.Client` of its own. */
export interface ListeningClient {
  connect(): Promise<unknown>;
  query(text: string, values?: readonly unknown[]): Promise<unknown>;
  on(event: string, listener: (...args: never[]) => void): unknown;
  end(): Promise<unknown>;
  readonly connection?: { readonly stream?: { destroy(): void } };
}

/** What a listener needs of the store, and tells it. */
export interface ListenerContext {
  /** Makes a connection, on which nothing was sent yet. */
  connect(): ListeningClient;
  /** Sends a message to a channel by another connection. */
  notify(channel: string, message: string): Promise<unknown>;
  message(message: string): void;
  /** Messages arrive from now on, or do not any more: some may have been missed. */
  changed(): void;
  /** The server accepts the subscription and delivers nothing. */
  deaf(): void;
  /** The connection was not made, or ended. */
  failed(error: Error): void;
}

/**
 * The connection that hears what other processes tell this one. Messages are hints: losing one delays, and breaks nothing.
 * It counts once a message to itself has arrived: pgbouncer accepts LISTEN also where it delivers nothing.
 */
export class Listener {
  readonly #channel: string;
  readonly #presence: string;
  readonly #process: string;
  readonly #context: ListenerContext;
  readonly #closing = new AbortController();
  #client: ListeningClient | undefined;
  #acknowledged = false;
  #changedAt = 0;
  #check: { readonly message: string; readonly heard: () => void } | undefined;

  /** `presence` is the SQL of the advisory lock that stands for a process, `$1`. */
  constructor(process: string, presence: string, context: ListenerContext) {
    this.#channel = `distributed_lock:${process.split(':').slice(-2).join(':')}`;
    this.#process = process;
    this.#presence = presence;
    this.#context = context;
  }

  /** Whether messages reach this process, as far as it knows. */
  get acknowledged(): boolean {
    return this.#acknowledged;
  }

  /** Begins to listen, for as long as it is not closed; resolves when the first connection hears, or is known not to. */
  open(): Promise<void> {
    return new Promise((resolve) => {
      void this.#run(resolve);
    });
  }

  /** Connects, and again whenever the connection ends. */
  async #run(tried: () => void): Promise<void> {
    for (let failures = 0; !this.#closing.signal.aborted; failures++) {
      let pauseMs: number = Math.min(failures * 50, PAUSE_MS.longest);
      try {
        const ended = this.#open();
        await this.#subscribe();
        if (await this.#hearsItself(ended)) {
          await this.#ask(`SELECT pg_advisory_lock_shared(${this.#presence})`, [this.#process]);
          failures = 0;
          this.#change(true);
          tried();
          await this.#ping(ended);
        } else {
          pauseMs = PAUSE_MS.deaf;
          this.#context.deaf();
        }
      } catch (error) {
        if (!this.#closing.signal.aborted) {
          this.#context.failed(error as Error);
        }
      }
      this.#end();
      tried();
      await sleep(pauseMs, undefined, { ref: false, signal: this.#closing.signal }).catch(() => undefined);
    }
  }

  /**
   * A message did not come that was sent: the connection may be half open. One that is new is trusted for a while, since a place may
   * have been lost before it stood.
   */
  distrust(): void {
    if (this.#acknowledged && performance.now() - this.#changedAt > PING_MS) {
      this.#change(false);
      this.#end();
    }
  }

  close(): void {
    this.#closing.abort();
    this.#end();
  }

  /** Resolves when the connection has ended. */
  #open(): Promise<void> {
    const client = this.#context.connect();
    this.#client = client;
    client.on('error', () => undefined);
    client.on('notification', ({ payload = '' }: { payload?: string }) => this.#heard(payload));
    return new Promise((resolve) => client.on('end', resolve));
  }

  async #subscribe(): Promise<void> {
    await this.#within(this.#client?.connect());
    await this.#ask(`LISTEN "${this.#channel}"`);
  }

  /** Rejects where the connection ends meanwhile, which says nothing of what the server delivers. */
  async #hearsItself(ended: Promise<void>): Promise<boolean> {
    const message = `check ${randomUUID()}`;
    const heard = new Promise<void>((resolve) => {
      this.#check = { message, heard: resolve };
    });
    const over = ended.then(() => Promise.reject(new Error('the connection ended')));
    over.catch(() => undefined);
    await this.#context.notify(this.#channel, message);
    const hears = this.#within(heard).then(
      () => true,
      () => false,
    );
    return Promise.race([over, hears]);
  }

  /** A half-open connection is silent for ever: one that does not answer is made anew. */
  async #ping(ended: Promise<void>): Promise<void> {
    const over = new AbortController();
    void ended.then(() => over.abort());
    // Ends with the connection: pauses that go on would add up where it is ended over and over.
    const pause = (): Promise<boolean> => sleep(PING_MS, true, { ref: false, signal: over.signal }).catch(() => false);
    while (await pause()) {
      await this.#ask('SELECT 1');
    }
  }

  #ask(sql: string, values?: readonly unknown[]): Promise<unknown> {
    return this.#within(this.#client?.query(sql, values));
  }

  /** Where the event loop was blocked, replies that lie unread are read first. */
  #within<T>(answer: Promise<T> | undefined): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => setImmediate(reject, new Error('no reply')), SILENCE_MS).unref();
      Promise.resolve(answer)
        .then(resolve, reject)
        .finally(() => clearTimeout(timer));
    });
  }

  #heard(message: string): void {
    if (message === this.#check?.message) {
      this.#check.heard();
    } else {
      this.#context.message(message);
    }
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

  /** Ends the connection, also one that is half open: its end would wait for the other side. */
  #end(): void {
    const client = this.#client;
    this.#client = undefined;
    this.#change(false);
    client?.end().catch(() => undefined);
    client?.connection?.stream?.destroy();
  }
}
