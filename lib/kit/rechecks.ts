import type { Place } from '../core/seam/lock-store.js';
import { RECHECK_MS } from './protocol.js';

/** The connection by which a process is notified. */
export interface Subscription {
  /** Whether messages reach this process, as far as it knows. */
  readonly acknowledged: boolean;
  /** A message did not come: the connection may be dead, and is made anew. */
  distrust(): void;
}

/**
 * When the places of this process ask again. The first two places of a queue ask soon, and all places do while the
 * process may not be notified. A place that the queue lost without a message asks soon from then on.
 */
export class Rechecks {
  readonly #places = new WeakMap<Place, 'queued' | 'lost'>();

  /** In how many milliseconds at the latest; `joined` where the place is new at that rank, 0 for the first. */
  recheckMs(place: Place, rank: number, joined: boolean, subscription: Subscription | undefined): number {
    const known = this.#places.get(place);
    if (joined && known) {
      this.#places.set(place, 'lost');
      subscription?.distrust();
    } else if (!known) {
      this.#places.set(place, 'queued');
    }
    const soon = rank < 2 || !subscription?.acknowledged || this.#places.get(place) === 'lost';
    return soon ? RECHECK_MS.soon : RECHECK_MS.late;
  }

  /** A grant took the place off the queue: it is not lost where it joins again. */
  forget(place: Place): void {
    this.#places.delete(place);
  }
}
