import type { Clock } from '../../core/clock.js';
import { DONE_MS } from './protocol.js';

/** The first answer of each hold's release: a repetition answers the same, and a late acquire of that hold is refused. */
export class DoneMarks {
  readonly #clock: Clock;
  /** Oldest first. */
  readonly #marks = new Map<string, { readonly answer: boolean; readonly until: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get(hold: string): boolean | undefined {
    const now = this.#clock.monotonic();
    for (const [oldest, { until }] of this.#marks) {
      if (until > now) {
        break;
      }
      this.#marks.delete(oldest);
    }
    // Where the clock was set back, an older mark may outlast this one.
    const mark = this.#marks.get(hold);
    return mark && mark.until > now ? mark.answer : undefined;
  }

  set(hold: string, answer: boolean): void {
    this.#marks.set(hold, { answer, until: this.#clock.monotonic() + DONE_MS });
  }

  clear(): void {
    this.#marks.clear();
  }
}
