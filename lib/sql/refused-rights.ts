/** How many connections are ended in a second that were refused. */
const MOST = 20;

/**
 * Ends connections whose user lacks a right: the last user of the connection may have left another role there. Not all
 * connections are ended, since new ones are refused as well where the right was taken away.
 */
export class RefusedRights {
  #since = -Infinity;
  #count = 0;

  /** Whether the connection of this refusal is to be ended. */
  isDue(): boolean {
    const now = performance.now();
    if (now - this.#since >= 1_000) {
      this.#since = now;
      this.#count = 0;
    }
    return ++this.#count <= MOST;
  }
}
