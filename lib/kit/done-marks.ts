import type { Clock } from '../core/seam/time.js';
import { DONE_MS } from './protocol.js';

interface DoneMark {
  readonly answer: boolean;
  readonly until: number;
}

/**
 * The first answers to the releases of unanswered holds: a repetition answers the same, and a late acquire of that hold
 * is refused. Marks that are over go together: if the oldest mark is deleted each time, a map looks through all marks
 * that were deleted before.
 */
export class DoneMarks {
  readonly #clock: Clock;
  #recent = new Map<string, DoneMark>();
  /** All of them are over by the next change. */
  #older = new Map<string, DoneMark>();
  #changesAt = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get(hold: string): boolean | undefined {
    const mark = this.#recent.get(hold) ?? this.#older.get(hold);
    return mark && mark.until > this.#clock.monotonic() ? mark.answer : undefined;
  }

  set(hold: string, answer: boolean): void {
    const now = this.#clock.monotonic();
    if (now >= this.#changesAt) {
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
