/** Random numbers that a seed repeats: mulberry32, of which a run needs thousands. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed | 0;
  }

  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  between(least: number, most: number): number {
    return least + this.next() * (most - least);
  }

  whole(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  chance(probability: number): boolean {
    return probability > 0 && this.next() < probability;
  }

  pick<T>(items: readonly T[]): T {
    return items[this.whole(0, items.length - 1)] as T;
  }
}

const { MODEL_SEED = '1' } = process.env;
/**
 * The seed of all random choices of the tests: 1 in each run of `npm test`, and another number in each run of `npm run
 * test:long`, which prints it (test/runner/seed.mjs). `MODEL_SEED` repeats it.
 */
export const SEED = Number(MODEL_SEED);

/**
 * The seeds of a test, from `SEED` on. A failure names the seed of its run, and `MODEL_SEED=<seed> MODEL_RUNS=1`
 * repeats it.
 */
export function seedsOf(runs: number): readonly number[] {
  const { MODEL_RUNS = String(runs) } = process.env;
  return Array.from({ length: Number(MODEL_RUNS) }, (_, run) => SEED + run);
}
