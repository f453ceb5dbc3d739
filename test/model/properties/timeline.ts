/** Something that will happen, unless it is cancelled. */
export interface Event {
  readonly at: number;
  readonly run: () => void;
  cancelled: boolean;
}

/** The simulated time and what is still to happen. */
export class Timeline {
  now = 0;
  /** The soonest is the last; events of one instant happen in the order in which they were made. */
  readonly #events: Event[] = [];

  after(ms: number, run: () => void): Event {
    const event = { at: this.now + ms, run, cancelled: false };
    // Most are due soon.
    this.#events.splice(this.#events.findLastIndex(({ at }) => at > event.at) + 1, 0, event);
    return event;
  }

  /** Runs the soonest event that is due until then; false where there is none. */
  runNext(end: number): boolean {
    for (let next = this.#events.at(-1); next && next.at <= end; next = this.#events.at(-1)) {
      this.#events.pop();
      if (!next.cancelled) {
        this.now = next.at;
        next.run();
        return true;
      }
    }
    return false;
  }
}
