/** For how long a plain statement is not tried on a key where one changed nothing, in milliseconds. */
const PAUSE_MS = 2_000;
/** How many keys are remembered: others try in vain, which costs one statement. */
const MOST_KEYS = 1_000;

/** The keys for which a plain statement was sent in vain a moment ago: somebody else wants them, or they are used all the time. */
export class RefusedKeys {
  readonly #until = new Map<string, number>();

  add(key: string): void {
    if (this.#until.size >= MOST_KEYS) {
      this.#until.clear();
    }
    this.#until.set(key, performance.now() + PAUSE_MS);
  }

  has(key: string): boolean {
    const until = this.#until.get(key);
    if (until !== undefined && until <= performance.now()) {
      this.#until.delete(key);
      return false;
    }
    return until !== undefined;
  }
}
