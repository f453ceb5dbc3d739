import { failureCode, isOfStore, type LockError } from '../words/errors.js';
import type { Availability } from '../seam/availability.js';
import type { Clock } from '../seam/time.js';

/** How often a line says at most that the store fails for one reason, in milliseconds. */
const EVERY_MS = 60_000;

/**
 * How a failure is reported: by an event, where the outage or its reason is new; and by a line, which also counts the
 * outages that no line reported.
 */
interface Failed {
  readonly begins: boolean;
  readonly isNews: boolean;
  readonly untold: number | undefined;
}

/**
 * Decides how outages are reported. Events report all; the log has a line a minute for a server whose memory hovers at
 * its limit.
 */
export class Outages {
  readonly #availability: Availability;
  readonly #clock: Clock;
  /** When a line said last that the store fails, by the answer of the store. */
  readonly #saidAt = new Map<string, number>();
  /** The number of outages that no line has reported. */
  #untold = 0;
  #isTold = false;
  #onAttemptFailed!: () => void;
  #onAnswered!: () => void;

  constructor(availability: Availability, clock: Clock) {
    this.#availability = availability;
    this.#clock = clock;
  }

  /** Calls `attemptFailed` for each attempt that fails, and `answered` where an answer ends an outage. */
  onChange(attemptFailed: () => void, answered: () => void): void {
    this.#onAttemptFailed = attemptFailed;
    this.#onAnswered = answered;
  }

  failed(error: LockError, isAttempt: boolean): Failed {
    if (!isOfStore(error)) {
      return { begins: false, isNews: false, untold: undefined };
    }
    const news = this.#availability.failed(error, isAttempt);
    const begins = news === 'outage';
    if (begins) {
      this.#isTold = false;
      this.#untold++;
    }
    if (isAttempt) {
      // An outage that renewals or checks found ends with the next of them.
      this.#onAttemptFailed();
    }
    return { begins, isNews: news !== undefined, untold: this.#isTold && !news ? undefined : this.#toTell(error) };
  }

  /** How long the outage was that an answer ends, and whether a line has reported it. */
  answered(isAttempt: boolean): { readonly awayMs: number; readonly isTold: boolean } | undefined {
    const awayMs = this.#availability.answered(isAttempt);
    if (awayMs === undefined) {
      return undefined;
    }
    this.#onAnswered();
    return { awayMs, isTold: this.#isTold };
  }

  /**
   * How many outages a line about this failure has to report besides it; undefined where a line about it was written
   * not long ago.
   */
  #toTell(error: LockError): number | undefined {
    const code = failureCode(error) ?? '';
    const now = this.#clock.monotonic();
    if (now - (this.#saidAt.get(code) ?? -Infinity) < EVERY_MS) {
      return undefined;
    }
    const untold = this.#untold - (this.#isTold ? 0 : 1);
    this.#saidAt.set(code, now);
    this.#isTold = true;
    this.#untold = 0;
    return untold;
  }
}
