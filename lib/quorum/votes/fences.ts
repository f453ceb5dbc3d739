/**
 * The fences that a store proposes. They rise, and each is above all that it has seen, so that servers seldom have to
 * answer with another. A fence that all of them store is settled in one round.
 */
export class Fences {
  #highest = 0;

  /** The first of `fences` fences. `clockMs` is the time of the servers' clocks. */
  next(fences: number, clockMs = Date.now()): number {
    const first = Math.max(this.#highest + 1, Math.floor(clockMs * 1_000));
    this.#highest = first + fences - 1;
    return first;
  }

  /**
   * A server stored `fence`, and reserved `fences` fences. A fence lower than `proposed` means that the proposal was
   * too far ahead of the server's clock. The next proposals then follow the clocks again: otherwise each server would
   * answer with a time of its own.
   */
  stored(fence: number, proposed: number, fences: number): void {
    this.#highest = Math.max(fence + fences - 1, fence < proposed && this.#highest >= proposed ? 0 : this.#highest);
  }
}
