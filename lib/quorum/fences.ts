/**
 * The fences that a store proposes. They rise, and each is above all that it has seen, so that servers seldom have to
 * answer with another: a fence that all of them take is settled in one round.
 */
export class Fences {
  #highest = 0;

  next(): number {
    this.#highest = Math.max(this.#highest + 1, Date.now() * 1_000);
    return this.#highest;
  }

  saw(fence: number): void {
    this.#highest = Math.max(this.#highest, fence);
  }
}
