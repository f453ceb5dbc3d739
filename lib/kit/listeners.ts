import type { ForcedListener, TurnListener } from '../core/seam/lock-store.js';

/**
 * The longest message about a key that is read, and the longest id of another message, in characters: much longer than
 * any message of this library.
 */
const LONGEST_OF_KEY = 8_192;
const LONGEST_ID = 100;

/**
 * Is called with a message of another process, and with the id that its sender gave it: `-` where no copies of it
 * arrive.
 */
export type MessageListener = (text: string, id: string) => void;

/** The listeners that a store notifies of turns, of forced releases, and of messages of other processes. */
export class Listeners {
  readonly #turns = new Set<TurnListener>();
  readonly #forced = new Set<ForcedListener>();
  readonly #messages = new Set<MessageListener>();

  onTurn(listener: TurnListener, until?: AbortSignal): void {
    add(this.#turns, listener, until);
  }

  onForced(listener: ForcedListener, until?: AbortSignal): void {
    add(this.#forced, listener, until);
  }

  onMessage(listener: MessageListener, until?: AbortSignal): void {
    add(this.#messages, listener, until);
  }

  /** How many are notified of turns. */
  get turnListeners(): number {
    return this.#turns.size;
  }

  turn(key: string, name: string): void {
    for (const listener of this.#turns) {
      listener.turn(key, name);
    }
  }

  forced(key: string, fence: number): void {
    for (const listener of this.#forced) {
      listener(key, fence);
    }
  }

  message(text: string, id = ''): void {
    for (const listener of this.#messages) {
      listener(text, id);
    }
  }

  /** Messages may have been lost. */
  recheck(): void {
    for (const listener of this.#turns) {
      listener.recheck();
    }
  }

  /**
   * Notifies of a message: `turn <place> <key>`, `forced <fence> <key>` or `note <id> <text>`. Ignores other messages.
   */
  receive(message: string, keyOf = (key: string): string => key): void {
    const [, kind, value = '', key = ''] = /^(\w+) (\S+) (.*)$/s.exec(message) ?? [];
    // An id of any length must not be remembered: whoever may send a message may be a stranger.
    if (kind === 'note' ? value.length > LONGEST_ID : message.length > LONGEST_OF_KEY) {
      return;
    }
    if (kind === 'turn') {
      this.turn(keyOf(key), value);
    } else if (kind === 'forced') {
      this.forced(keyOf(key), Number(value));
    } else if (kind === 'note') {
      this.message(key, value);
    }
  }
}

/** Adds a listener, unless `until` has aborted already: an abort is not notified twice. */
function add<T>(listeners: Set<T>, listener: T, until: AbortSignal | undefined): void {
  if (until?.aborted) {
    return;
  }
  listeners.add(listener);
  until?.addEventListener('abort', () => listeners.delete(listener), { once: true });
}
