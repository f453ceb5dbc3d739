/**
 * The fences that a store proposes. They rise, and each is above all that it has seen, so that servers seldom have to
 * answer with another: a fence that all of them take is settled in one round.
 */
export class Fences {
  #highest = 0;
  /** How far the clock here is ahead of those of the servers, as far as they have told, in µs. */
  #aheadUs = 0;

  next(): number {
    this.#highest = Math.max(this.#highest + 1, Date.now() * 1_000 - this.#aheadUs);
    return this.#highest;
  }

  /**
   * A server stored `fence`. One that is lower than was proposed tells the server's clock: what was proposed is too far ahead of
   * it, and each server would answer with a time of its own.
   */
  stored(fence: number, proposed: number): void {
    if (fence < proposed) {
      this.#aheadUs = Date.now() * 1_000 - fence;
    }
    this.#highest = Math.max(fence, fence < proposed && this.#highest >= proposed ? 0 : this.#highest);
  }
}
