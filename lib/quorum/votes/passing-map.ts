/** The fewest entries that are searched for those that are over. */
const FEWEST = 1_024;

/** A map whose entries are over some time. Those that nobody deletes are forgotten once there are many. */
export class PassingMap<V> extends Map<string, V> {
  readonly #isOver: (value: V, now: number) => boolean;
  #sweepAt = FEWEST;

  constructor(isOver: (value: V, now: number) => boolean) {
    super();
    this.#isOver = isOver;
  }

  override set(name: string, value: V): this {
    if (this.size >= this.#sweepAt) {
      this.#sweep();
    }
    return super.set(name, value);
  }

  #sweep(): void {
    const now = performance.now();
    for (const [name, value] of this) {
      if (this.#isOver(value, now)) {
        this.delete(name);
      }
    }
    this.#sweepAt = Math.max(FEWEST, this.size * 2);
  }
}
