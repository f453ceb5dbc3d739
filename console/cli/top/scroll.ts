/** The keys that scroll, by how far they go from a row; `page` is the number of rows that are shown. */
const MOVES: Readonly<Record<string, (first: number, page: number) => number>> = {
  up: (first) => first - 1,
  down: (first) => first + 1,
  pageup: (first, page) => first - page,
  pagedown: (first, page) => first + page,
  home: () => 0,
  end: () => Infinity,
};

/** Which row comes first on a screen that shows a part of the rows. */
export class Scroll {
  #first = 0;
  #page = 1;

  static takes(key: string): boolean {
    return Object.hasOwn(MOVES, key);
  }

  /** The rows that are shown change with the next `fit`. */
  press(key: string): void {
    this.#first = Math.max(0, MOVES[key]?.(this.#first, this.#page) ?? this.#first);
  }

  /** The first row, which is `last` at most; a page is so many rows from now on. */
  fit(last: number, page: number): number {
    this.#first = Math.min(this.#first, last);
    this.#page = page;
    return this.#first;
  }
}
