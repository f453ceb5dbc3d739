import type { Clock } from './time.js';
import { failureCode, LockStoreError, type LockError } from '../words/errors.js';

/** For how long attempts fail, with no answer in between, until the store counts as away, in milliseconds. */
const AWAY_AFTER_MS = 1_000;
/** How often a call asks a store that is away, while the others wait or fail at once, in milliseconds. */
const PROBE_EVERY_MS = 500;
/** How long it counts as away after the last failure, where no call has asked it since, in milliseconds. */
const KNOWN_FOR_MS = 5_000;
/** How many different failures of one outage are news. */
const MOST_NEWS = 5;
/** When an old failure says nothing of a new one any more, in milliseconds: longer than between two health checks. */
const OUTDATED_AFTER_MS = 60_000;

/**
 * Tracks whether a store answers. An answered renewal ends an outage that renewals found. An outage that attempts to
 * acquire found lasts until one of them is answered: a full server, for example, renews and grants nothing. A failure
 * that no retry mends counts as well, where it concerns the store and not one key.
 */
export class Availability {
  readonly #clock: Clock;
  /** When the first attempt failed that no answer has followed. */
  #failingSince: number | undefined;
  /** When the first command failed that no answer has followed, to whatever was asked. */
  #silentSince: number | undefined;
  #failedAt = 0;
  /** Since when the store has said, whenever it was asked, that it grants nothing. */
  #refusingSince: number | undefined;
  #refusedAt = 0;
  #attemptsFail = false;
  #failure: LockError | undefined;
  /** The codes that were answered instead of grants in this outage: '' for no answer. */
  readonly #codes = new Set<string>();
  #probedAt = -Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * The store failed an attempt to acquire, or another command. Answers what is new about it: the outage itself, or the
   * reason of the failure.
   */
  failed(error: LockError, isAttempt: boolean): 'outage' | 'reason' | undefined {
    const isFirst = this.#failingSince === undefined;
    const code = failureCode(error);
    const isNew = this.#codes.size < MOST_NEWS && !this.#codes.has(code ?? '');
    const now = this.#clock.monotonic();
    if (this.#failingSince === undefined || now - this.#failedAt >= KNOWN_FOR_MS) {
      this.#failingSince = now;
    }
    // An attempt that was refused was answered. A check that was refused, as by a wrong password, was not.
    const isSilent = !isAttempt || (code === undefined && error.code !== 'LOCK_CONFIGURATION');
    if (!isSilent) {
      this.#silentSince = undefined;
    } else if (this.#silentSince === undefined || now - this.#failedAt >= OUTDATED_AFTER_MS) {
      this.#silentSince = now;
    }
    this.#failedAt = now;
    this.#failure = error;
    this.#attemptsFail ||= isAttempt;
    if (isNew) {
      this.#codes.add(code ?? '');
    }
    return isFirst ? 'outage' : isNew ? 'reason' : undefined;
  }

  /** The store answered; for how long it had not, in milliseconds, where that ends an outage. */
  answered(isAttempt: boolean): number | undefined {
    if (this.#failingSince === undefined) {
      return undefined;
    }
    this.#silentSince = undefined;
    if (this.#attemptsFail && !isAttempt) {
      return undefined;
    }
    const awayMs = this.#clock.monotonic() - this.#failingSince;
    this.#failingSince = undefined;
    this.#attemptsFail = false;
    this.#failure = undefined;
    this.#codes.clear();
    return awayMs;
  }

  /** The code that it answered last where it fails; undefined for no answer. */
  get code(): string | undefined {
    return this.#failure && failureCode(this.#failure);
  }

  /** Whether the last attempts failed: for a second at least, and not long ago. */
  get isAway(): boolean {
    return (
      this.#failingSince !== undefined &&
      this.#failedAt - this.#failingSince >= AWAY_AFTER_MS &&
      this.#clock.monotonic() - this.#failedAt < KNOWN_FOR_MS
    );
  }

  /** The store was asked, and said whether it grants nothing. */
  said(isRefusing: boolean): void {
    const now = this.#clock.monotonic();
    if (!isRefusing) {
      this.#refusingSince = undefined;
    } else if (this.#refusingSince === undefined || now - this.#refusedAt >= OUTDATED_AFTER_MS) {
      this.#refusingSince = now;
    }
    this.#refusedAt = now;
  }

  /**
   * For how long a store has granted nothing, in milliseconds: by its own last answer, or by attempts that failed;
   * undefined where it may grant.
   */
  get refusingMs(): number | undefined {
    const now = this.#clock.monotonic();
    const said = now - this.#refusedAt < OUTDATED_AFTER_MS ? this.#refusingSince : undefined;
    const since = Math.min(said ?? Infinity, this.isAway ? (this.#failingSince ?? Infinity) : Infinity);
    return since < Infinity ? now - since : undefined;
  }

  /**
   * For how long the store has answered nothing, in milliseconds, as far as is known; undefined where the last answer
   * is no failure.
   */
  get silentMs(): number | undefined {
    return this.#silentSince === undefined ? undefined : this.#clock.monotonic() - this.#silentSince;
  }

  /**
   * Whether a call may ask: one of all calls that want a store that is away may, so that its next answer is noticed.
   * Where no retry mends why the store fails, a call that would wait asks by itself, and gets the failure at once.
   */
  mayAsk(waits: boolean): boolean {
    return !this.isAway || this.#takeProbe() || (waits && !(this.#failure instanceof LockStoreError));
  }

  /** When the next call may ask a store that is away. */
  get asksAgainAt(): number {
    return this.#probedAt + PROBE_EVERY_MS;
  }

  #takeProbe(): boolean {
    const now = this.#clock.monotonic();
    const isDue = now >= this.asksAgainAt;
    if (isDue) {
      this.#probedAt = now;
    }
    return isDue;
  }

  /** The error of a call that fails at once. */
  refusal(key: string): LockStoreError {
    const failingMs = Math.round(this.#clock.monotonic() - (this.#failingSince ?? 0));
    const does = this.code === undefined ? 'has not answered' : `has granted nothing (${this.code})`;
    return this.#error(
      key,
      `the store ${does} for ${failingMs} ms, and this call does not wait for it (onUnavailable: 'throw'). ` +
        `It is asked every ${PROBE_EVERY_MS} ms; repeat the call later.`,
      false,
    );
  }

  /** The error of a call whose time is over, in the words of the last attempt that another call has made for it. */
  lastFailure(key: string, unknown: boolean): LockStoreError {
    const { detail = '', key: failedKey = '' } = this.#failure ?? {};
    return this.#error(key, detail.replace(`Lock "${failedKey}": `, ''), unknown);
  }

  #error(key: string, said: string, unknown: boolean): LockStoreError {
    return new LockStoreError(`Lock "${key}": ${said}`, key, { cause: this.#failure?.cause, unknown });
  }
}
