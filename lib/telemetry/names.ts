/** How many names there may be; more would fill the memory of what counts. */
const MOST = 200;
const OTHER = '_other';

/** The names that are counted. The first ones keep theirs, and later ones are counted together. */
export class Names {
  readonly #known = new Set<string>();

  of(name: string): string {
    if (this.#known.has(name)) {
      return name;
    }
    if (this.#known.size >= MOST) {
      return OTHER;
    }
    this.#known.add(name);
    return name;
  }
}
