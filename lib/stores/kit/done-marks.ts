import type { Clock } from '../../core/seam/time.js';
import { DONE_MS } from './protocol.js';

interface DoneMark {
  readonly answer: boolean;
  readonly until: number;
}

/**
 * The first answer of each hold's release: a repetition answers the same, and a late acquire of that hold is refused. Marks
 * that are over go together: a map from which the oldest is deleted each time looks through all that were deleted before.
 */
export class DoneMarks {
  readonly #clock: Clock;
  #recent = new Map<string, DoneMark>();
  /** All of them are over by the next change, or are too many. */
  #older = new Map<string, DoneMark>();
  #changesAt = 0;
  /** How many recent ones may be kept. */
  readonly #most: number;

  /** With `most`, marks go also where there are more of them: for commands that never come late, and are repeated at once or never. */
  constructor(clock: Clock, most = Infinity) {
    this.#clock = clock;
    this.#most = most;
  }

  get(hold: string): boolean | undefined {
    const mark = this.#recent.get(hold) ?? this.#older.get(hold);
    return mark && mark.until > this.#clock.monotonic() ? mark.answer : undefined;
  }

  set(hold: string, answer: boolean): void {
    const now = this.#clock.monotonic();
    if (now >= this.#changesAt || this.#recent.size >= this.#most) {
      this.#older = this.#recent;
      this.#recent = new Map();
      this.#changesAt = now + DONE_MS;
    }
    this.#recent.set(hold, { answer, until: now + DONE_MS });
  }

  clear(): void {
    this.#recent.clear();
    this.#older.clear();
  }
}
