/** Counts what is on its way, so that shutdown can wait for it. */
export class InFlight {
  #count = 0;
  #onDrained: (() => void) | undefined;

  begin(): void {
    this.#count++;
  }

  end(): void {
    this.#count--;
    if (this.#count === 0) {
      this.#onDrained?.();
    }
  }

  /** Resolves when nothing is on its way any more. */
  async drained(): Promise<void> {
    if (this.#count > 0) {
      await new Promise<void>((resolve) => {
        this.#onDrained = resolve;
      });
    }
  }
}
