/**
 * The states that were seen, by 51 bits of a digest of each: among ten million, two states that differ count as one by
 * a chance of 2 %.
 */
export class Seen {
  readonly #slots: Float64Array;
  readonly #parents: number[] = [];
  readonly #choices: number[] = [];

  /** For so many states, and those that their last one leads to. */
  constructor(most: number) {
    const slots = 2 ** Math.ceil(Math.log2(most * 2 + 10_000));
    this.#slots = new Float64Array(slots);
  }

  get size(): number {
    return this.#parents.length;
  }

  /** Whether the state is new; it was reached from the state `parent` by its choice of that number. */
  add(digest: number, parent: number, choice: number): boolean {
    const mask = this.#slots.length - 1;
    for (let slot = digest % this.#slots.length; ; slot = (slot + 1) & mask) {
      if (this.#slots[slot] === digest) {
        return false;
      }
      if (this.#slots[slot] === 0) {
        this.#slots[slot] = digest;
        this.#parents.push(parent);
        this.#choices.push(choice);
        return true;
      }
    }
  }

  /** The choices that lead to the state of that number. */
  wayTo(number: number): number[] {
    const way: number[] = [];
    for (let at = number; at > 0; at = this.#parents[at] as number) {
      way.push(this.#choices[at] as number);
    }
    return way.toReversed();
  }
}
