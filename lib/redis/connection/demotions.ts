/** For how long a new connection to a server that takes no writes is kept, in milliseconds. */
const KEPT_MS = { least: 100, most: 1_000 } as const;

/**
 * When to connect anew after a server refused a write: at once, since another connection may lead to the new master;
 * where it does not, less and less often. A server that stays a replica answers reads in between, and must not seem to
 * be away.
 */
export class Demotions {
  #at = -Infinity;
  #keptMs: number = KEPT_MS.least;

  /** The server has refused a write; whether to connect anew. */
  refused(): boolean {
    const now = performance.now();
    const sinceMs = now - this.#at;
    if (sinceMs < this.#keptMs) {
      return false;
    }
    this.#keptMs = sinceMs > 5 * KEPT_MS.most ? KEPT_MS.least : Math.min(2 * this.#keptMs, KEPT_MS.most);
    this.#at = now;
    return true;
  }
}
