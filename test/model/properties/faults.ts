interface Fault {
  readonly from: number;
  readonly to: number;
}

/** The faults of the script so far: networks, machines, clocks, connections and operators. */
export class Faults {
  readonly #faults: Fault[] = [];

  get count(): number {
    return this.#faults.length;
  }

  happened(from: number, to = from): void {
    this.#faults.push({ from, to });
  }

  /** How many of them were not over before that moment. */
  since(moment: number): number {
    return this.#faults.filter(({ to }) => to > moment).length;
  }
}
