import type { ForcedListener, Place, TurnListener } from '../../core/lock-store.js';
import { RECHECK_MS } from '../kit/protocol.js';
import type { Listener } from './listener.js';

/**
 * Passes messages of other processes on to core, and decides how often a queued process asks again where they may be
 * missing.
 */
export class Wakeups {
  readonly #keyOf: (row: string) => string;
  #forced: ForcedListener[] = [];
  #listeners: TurnListener[] = [];
  /** Places that a queue is known to have, and those that it lost without a message, whose process polls often. */
  readonly #places = new WeakMap<Place, 'queued' | 'passed over'>();

  /** `keyOf` gives the key that a row is for. */
  constructor(keyOf: (row: string) => string) {
    this.#keyOf = keyOf;
  }

  onForced(listener: ForcedListener): void {
    this.#forced.push(listener);
  }

  onTurn(listener: TurnListener): void {
    this.#listeners.push(listener);
  }

  /** In how many milliseconds to ask again for a place of that rank in the queue; `joined` where it is new there. */
  recheckMs(listener: Listener | undefined, place: Place, rank: number, joined: boolean): number {
    const known = this.#places.get(place);
    if (joined && known) {
      // It was skipped, or not notified of its turn.
      this.#places.set(place, 'passed over');
      listener?.distrust();
    } else if (!known) {
      this.#places.set(place, 'queued');
    }
    const soon = rank < 2 || !listener?.acknowledged || this.#places.get(place) === 'passed over';
    return soon ? RECHECK_MS.soon : RECHECK_MS.late;
  }

  recheck(): void {
    for (const listener of this.#listeners) {
      listener.recheck();
    }
  }

  /** Takes a message of another process. */
  received(message: string): void {
    const [, kind, value = '', row = ''] = /^(\w+) (\S+) (.*)$/s.exec(message) ?? [];
    if (kind === 'turn') {
      for (const listener of this.#listeners) {
        listener.turn(this.#keyOf(row), value);
      }
    } else if (kind === 'forced') {
      for (const listener of this.#forced) {
        listener(this.#keyOf(row), Number(value));
      }
    }
  }

  close(): void {
    this.#forced = [];
    this.#listeners = [];
  }
}
