import type { ForcedListener, Place, TurnListener } from '../../core/lock-store.js';
import type { Listener } from './listener.js';

/** How often those look who are about to have their turn, or who cannot be told of it; and how often the others do, in milliseconds. */
const RECHECK_MS = { soon: 300, seldom: 2_000 } as const;

/** What other processes tell this one, and how often to look where they may not be heard. */
export class Wakeups {
  readonly #keyOf: (row: string) => string;
  #forced: ForcedListener[] = [];
  #listeners: TurnListener[] = [];
  /** Places that a queue is known to have, and those that it lost without a message: whoever has one of these looks often. */
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

  /** When to look again for a place that has a rank in the queue, in milliseconds; `joined` where it is new there. */
  recheckMs(listener: Listener | undefined, place: Place, rank: number, joined: boolean): number {
    const known = this.#places.get(place);
    if (joined && known) {
      // It was skipped, or not told of its turn.
      this.#places.set(place, 'passed over');
      listener?.distrust();
    } else if (!known) {
      this.#places.set(place, 'queued');
    }
    const soon = rank < 2 || !listener?.acknowledged || this.#places.get(place) === 'passed over';
    return soon ? RECHECK_MS.soon : RECHECK_MS.seldom;
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
