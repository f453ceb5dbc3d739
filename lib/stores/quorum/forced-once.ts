import type { ForcedListener } from '../../core/lock-store.js';

/** Forced releases that are remembered. */
const REMEMBERED = 1_000;

/** Notifies of each forced release once, though each server sends a message. */
export class ForcedOnce {
  readonly #known = new Set<string>();
  #listeners: ForcedListener[] = [];

  add(listener: ForcedListener): void {
    this.#listeners.push(listener);
  }

  readonly notify = (key: string, fence: number): void => {
    const name = `${fence} ${key}`;
    if (this.#known.has(name)) {
      return;
    }
    this.#known.add(name);
    if (this.#known.size > REMEMBERED) {
      this.#known.delete(this.#known.values().next().value as string);
    }
    for (const listener of this.#listeners) {
      listener(key, fence);
    }
  };

  close(): void {
    this.#listeners = [];
  }
}
