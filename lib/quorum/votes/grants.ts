import type { HoldRecord } from '../../core/seam/lock-store.js';
import { PassingMap } from './passing-map.js';

/**
 * The facts about a hold that is in, which a vote that is cast again needs, and a renewal does not say.
 */
export interface GrantedHold {
  /**
   * The name of the hold in the servers: the vote of the attempt that was granted, or its id where it joined by a
   * ticket.
   */
  readonly vote: string;
  /** Who holds the lock. */
  by: string;
  /** Since when it is held, by the monotonic clock. */
  readonly since: number;
  /** When its lease ends, by the monotonic clock. */
  endsAt: number;
  /** The servers that are asked to let it in because they denied it. */
  readonly mending: Set<unknown>;
  /** Whether its release was sent: no server is asked to let it in any more. */
  isReleased: boolean;
}

/**
 * The holds of this process that are in a lock, by their ids. A hold whose lease is over without a release is forgotten
 * some time later.
 */
export class Grants {
  readonly #holds = new PassingMap<GrantedHold>(({ endsAt }, now) => endsAt < now);

  /** The name of a hold in the servers; its id, where that is not known. */
  voteOf(hold: string): string {
    return this.#holds.get(hold)?.vote ?? hold;
  }

  /** The release of the hold is sent: answers the hold's name in the servers. */
  release(hold: string): string {
    const known = this.#holds.get(hold);
    if (known) {
      known.isReleased = true;
    }
    return known?.vote ?? hold;
  }

  add({ id, by, ttlMs }: HoldRecord, vote: string, sentAt: number, since = sentAt): void {
    this.#holds.set(id, { vote, by, since, endsAt: sentAt + ttlMs, mending: new Set(), isReleased: false });
  }

  /** The lease of the hold was renewed. */
  renewed({ id, by, ttlMs }: HoldRecord, sentAt: number): void {
    const known = this.#holds.get(id);
    if (known) {
      known.endsAt = Math.max(known.endsAt, sentAt + ttlMs);
      known.by = by || known.by;
    }
  }

  /** Has a server let in a hold that it denied, unless that is going on. If it fails, the next renewal finds out. */
  mend(hold: string, server: unknown, send: (known: Readonly<GrantedHold>) => Promise<unknown>): void {
    const known = this.#holds.get(hold);
    if (known && !known.isReleased && !known.mending.has(server)) {
      known.mending.add(server);
      send(known)
        .catch(() => undefined)
        .finally(() => known.mending.delete(server));
    }
  }

  /** Forgets a hold, unless another attempt has got it meanwhile. */
  delete(hold: string, vote: string): void {
    if (this.#holds.get(hold)?.vote === vote) {
      this.#holds.delete(hold);
    }
  }

  clear(): void {
    this.#holds.clear();
  }
}
