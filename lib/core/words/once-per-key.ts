/** Keys that are remembered at most. */
const MOST_KEYS = 1_000;

/** Says of a key, once, that it is new; forgets the oldest keys where there are many. */
export class OncePerKey {
  readonly #seen = new Set<string>();

  isNew(key: string): boolean {
    if (this.#seen.has(key)) {
      return false;
    }
    for (const oldest of this.#seen) {
      if (this.#seen.size < MOST_KEYS) {
        break;
      }
      this.#seen.delete(oldest);
    }
    this.#seen.add(key);
    return true;
  }
}
