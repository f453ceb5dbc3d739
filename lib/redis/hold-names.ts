import { randomUUID } from 'node:crypto';
import type { HoldRecord } from '../core/seam/lock-store.js';

/** How much longer than its lease the name of a hold is kept, in milliseconds: the hold may be released late. */
const KEPT_MS = 60_000;
/** How often names that are no longer kept are removed, in milliseconds. */
const CLEANING_MS = 1_000;

/**
 * The names by which servers know holds whose grant was withdrawn. The withdrawal may arrive late, or twice, while the
 * caller tries again with the same hold. The caller then asks under another name, so that an old withdrawal cannot end
 * a later grant.
 */
export class HoldNames {
  /** By the id of the hold. */
  readonly #names = new Map<string, { readonly name: string; readonly keptUntil: number }>();
  #cleanedAt = 0;

  /** A hold as servers know it: one whose grant was withdrawn has another name. */
  named(hold: HoldRecord): HoldRecord {
    const name = this.#names.get(hold.id)?.name;
    if (name === undefined) {
      return hold;
    }
    this.#keep(hold, name);
    return { ...hold, id: name };
  }

  /** Gives a hold another name from now on. */
  rename(hold: HoldRecord): void {
    this.#forgetOld(performance.now());
    this.#keep(hold, randomUUID());
  }

  /** At most once a second, since it looks at all names. */
  #forgetOld(now: number): void {
    if (now - this.#cleanedAt < CLEANING_MS) {
      return;
    }
    this.#cleanedAt = now;
    for (const [id, { keptUntil }] of this.#names) {
      if (keptUntil <= now) {
        this.#names.delete(id);
      }
    }
  }

  #keep({ id, ttlMs }: HoldRecord, name: string): void {
    this.#names.set(id, { name, keptUntil: performance.now() + ttlMs + KEPT_MS });
  }
}
