import type { HoldRecord } from '../../core/seam/lock-store.js';
import { PassingMap } from './passing-map.js';

/** After how many milliseconds without an attempt a caller is taken to have given up. */
const GIVEN_UP_MS = 10_000;

/** Since when callers wait: the callers of this process that were refused, and may ask again. */
export class Waits {
  readonly #waits = new PassingMap<{ readonly since: number; readonly askedAt: number }>(({ askedAt }, now) => askedAt + GIVEN_UP_MS < now);

  /**
   * For how long a caller has waited at `now`, by the monotonic clock, in whole milliseconds; 0 in its first attempt.
   */
  waitedMs(hold: HoldRecord, now: number): number {
    return Math.ceil(now - (this.#waits.get(nameOf(hold))?.since ?? now));
  }

  /** An attempt that was sent at `sentAt` was refused. */
  refused(hold: HoldRecord, sentAt: number): void {
    const name = nameOf(hold);
    this.#waits.set(name, { since: this.#waits.get(name)?.since ?? sentAt, askedAt: sentAt });
  }

  granted(hold: HoldRecord): void {
    this.#waits.delete(nameOf(hold));
  }
}

/** A caller has one owner, and asks for one key at a time. Its holds have other ids where an attempt was withdrawn. */
function nameOf({ owner, key }: HoldRecord): string {
  return `${owner} ${key}`;
}
