import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

const PING_MS = 5_000;
/** How long the server may take to answer, in milliseconds. */
const SILENCE_MS = 2_000;

/** The part that is used of a `pg.Client` that listens. */
export interface ListeningClient {
  connect(): Promise<unknown>;
  query(text: string, values?: readonly unknown[]): Promise<unknown>;
  on(event: string, listener: (...args: never[]) => void): unknown;
  end(): Promise<unknown>;
  readonly connection?: { readonly stream?: { destroy(): void } };
}

/** One connection that listens to channels, from its start to its end. Its methods reject where it ends meanwhile. */
export class ListenConnection {
  readonly #client: ListeningClient;
  readonly #channels: readonly [string, ...string[]];
  readonly #received: (message: string) => void;
  readonly #over = new AbortController();
  #check: { readonly message: string; readonly arrived: () => void } | undefined;

  /** `received` is called with each message; `client` has not connected yet. */
  constructor(client: ListeningClient, channels: readonly [string, ...string[]], received: (message: string) => void) {
    this.#client = client;
    this.#channels = channels;
    this.#received = received;
    client.on('error', () => undefined);
    client.on('end', () => this.#over.abort(new Error('the connection ended')));
    client.on('notification', ({ payload = '' }: { payload?: string }) => this.#receive(payload));
  }

  async subscribe(): Promise<void> {
    await this.#within(this.#client.connect());
    for (const channel of this.#channels) {
      await this.ask(`LISTEN "${channel}"`);
    }
  }

  async ask(sql: string, values?: readonly unknown[]): Promise<void> {
    this.#over.signal.throwIfAborted();
    await this.#within(this.#client.query(sql, values));
  }

  /**
   * Whether messages arrive: pgbouncer accepts LISTEN also where it delivers nothing. `notify` sends a message by
   * another connection.
   */
  async delivers(notify: (channel: string, message: string) => Promise<unknown>): Promise<boolean> {
    const message = `check ${randomUUID()}`;
    const arrived = new Promise<void>((resolve) => {
      this.#check = { message, arrived: resolve };
    });
    await notify(this.#channels[0], message);
    return this.#within(arrived).then(
      () => true,
      () => {
        // A connection that has ended says nothing of the messages that the server delivers.
        this.#over.signal.throwIfAborted();
        return false;
      },
    );
  }

  /**
   * Resolves when the connection has ended. Asks the server from time to time: a half-open connection is silent for
   * ever.
   */
  async stayAlive(): Promise<void> {
    const { signal } = this.#over;
    const pause = (): Promise<boolean> => sleep(PING_MS, true, { ref: false, signal }).catch(() => false);
    while (await pause()) {
      await this.ask('SELECT 1');
    }
  }

  /** Ends the connection, also one that is half open, whose end would wait for the other side. */
  end(): void {
    this.#over.abort(new Error('the connection was ended'));
    this.#client.end().catch(() => undefined);
    this.#client.connection?.stream?.destroy();
  }

  #receive(message: string): void {
    if (message === this.#check?.message) {
      this.#check.arrived();
    } else {
      this.#received(message);
    }
  }

  /** Rejects where there is no answer in time. After the event loop was blocked, unread replies are read first. */
  #within(answer: Promise<unknown>): Promise<void> {
    const { signal } = this.#over;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => setImmediate(reject, new Error('no reply')), SILENCE_MS).unref();
      const ended = (): void => reject(signal.reason as Error);
      if (signal.aborted) {
        ended();
      }
      signal.addEventListener('abort', ended);
      answer
        .then(() => resolve(), reject)
        .finally(() => {
          clearTimeout(timer);
          signal.removeEventListener('abort', ended);
        });
    });
  }
}
