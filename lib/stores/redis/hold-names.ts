import { randomUUID } from 'node:crypto';
import type { HoldRecord } from '../../core/seam/lock-store.js';

/** How much longer than its lease the name of a hold is kept, in milliseconds: the hold may be released late. */
const KEPT_MS = 60_000;

/**
 * The names by which servers know holds of which a grant was withdrawn. The withdrawal may arrive late, or twice, while the caller
 * tries again with the same hold. It then asks under another name, so that an old withdrawal cannot end a later grant.
 */
export class HoldNames {
  /** By the id of the hold; in the order of their last use. */
  readonly #names = new Map<string, { readonly name: string; readonly keptUntil: number }>();

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
    const now = performance.now();
    for (const [id, { keptUntil }] of this.#names) {
      if (keptUntil > now) {
        break;
      }
      this.#names.delete(id);
    }
    this.#keep(hold, randomUUID());
  }

  #keep({ id, ttlMs }: HoldRecord, name: string): void {
    this.#names.delete(id);
    this.#names.set(id, { name, keptUntil: performance.now() + ttlMs + KEPT_MS });
  }
}
