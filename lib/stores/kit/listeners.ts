import type { ForcedListener, TurnListener } from '../../core/lock-store.js';

/** Those whom a store notifies of turns and of forced releases. */
export class Listeners {
  #turns: TurnListener[] = [];
  #forced: ForcedListener[] = [];

  onTurn(listener: TurnListener): void {
    this.#turns.push(listener);
  }

  onForced(listener: ForcedListener): void {
    this.#forced.push(listener);
  }

  /** How many are notified of turns. */
  get turnListeners(): number {
    return this.#turns.length;
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

  /** Messages may have been lost. */
  recheck(): void {
    for (const listener of this.#turns) {
      listener.recheck();
    }
  }

  /** Notifies of what a message says, `turn <place> <key>` or `forced <fence> <key>`. Ignores others. */
  receive(message: string, keyOf = (key: string): string => key): void {
    const [, kind, value = '', key = ''] = /^(\w+) (\S+) (.*)$/s.exec(message) ?? [];
    if (kind === 'turn') {
      this.turn(keyOf(key), value);
    } else if (kind === 'forced') {
      this.forced(keyOf(key), Number(value));
    }
  }

  clear(): void {
    this.#turns = [];
    this.#forced = [];
  }
}
