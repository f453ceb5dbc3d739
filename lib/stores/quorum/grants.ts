/** What the store has to know of a hold that came in by votes. */
export interface Grant {
  /** The name of the hold in the servers: the vote of the attempt that was granted. */
  readonly vote: string;
  /** When its lease ends, by the monotonic clock. */
  endsAt: number;
  /** The servers that were told of the fence although they had denied the hold: once is enough. */
  readonly told: Set<unknown>;
}

/** The fewest grants that are looked through for those that nobody released. */
const FEWEST = 1_024;

/** The holds that this process got by votes, by their ids. One whose lease is over without a release is forgotten some time later. */
export class Grants {
  readonly #grants = new Map<string, Grant>();
  #sweepAt = FEWEST;

  get(hold: string): Grant | undefined {
    return this.#grants.get(hold);
  }

  add(hold: string, vote: string, endsAt: number): void {
    if (this.#grants.size >= this.#sweepAt) {
      this.#sweep();
    }
    this.#grants.set(hold, { vote, endsAt, told: new Set() });
  }

  /** Forgets a hold, unless another attempt has got it meanwhile. */
  delete(hold: string, vote: string): void {
    if (this.#grants.get(hold)?.vote === vote) {
      this.#grants.delete(hold);
    }
  }

  clear(): void {
    this.#grants.clear();
  }

  #sweep(): void {
    const now = performance.now();
    for (const [hold, { endsAt }] of this.#grants) {
      if (endsAt < now) {
        this.#grants.delete(hold);
      }
    }
    this.#sweepAt = Math.max(FEWEST, this.#grants.size * 2);
  }
}
