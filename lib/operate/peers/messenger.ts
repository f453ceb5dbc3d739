import type { LockStore } from '../../core/seam/lock-store.js';

/** The longest message that is read, in characters. */
const LONGEST_MESSAGE = 262_144;

/**
 * Sends messages to the processes that use a store, and receives theirs. A message is a hint: where a message is lost,
 * its content is asked for again.
 */
export class Messenger {
  readonly #store: LockStore;
  readonly #closed: AbortSignal;

  /** The messenger hears nothing any more once `closed` aborts. */
  constructor(store: LockStore, closed: AbortSignal) {
    this.#store = store;
    this.#closed = closed;
  }

  /** This process in the store; undefined where the store carries no messages. */
  get process(): string | undefined {
    return this.#store.messages?.process;
  }

  /** Sends to all processes where `to` is not given. */
  send(message: object, to?: string): void {
    this.#send(message, to).catch(() => undefined);
  }

  /**
   * Registers a listener, which gets each message with its length. The listener checks the message: it may be a
   * stranger's.
   */
  onMessage(listener: (message: unknown, length: number) => void): void {
    this.#store.messages?.onMessage((text) => {
      if (text.length <= LONGEST_MESSAGE && !this.#closed.aborted) {
        listener(parse(text), text.length);
      }
    }, this.#closed);
  }

  /** Rejects also where a store of somebody's throws. */
  async #send(message: object, to?: string): Promise<void> {
    await this.#store.messages?.send(JSON.stringify(message), to);
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
