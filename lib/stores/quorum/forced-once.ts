import type { ForcedListener } from '../../core/lock-store.js';

/** Forced releases that are remembered, which several servers tell of. */
const REMEMBERED = 1_000;

/** Tells of each forced release once, though each server does. */
export class ForcedOnce {
  readonly #told = new Set<string>();
  #listeners: ForcedListener[] = [];

  add(listener: ForcedListener): void {
    this.#listeners.push(listener);
  }

  readonly tell = (key: string, fence: number): void => {
    const name = `${fence} ${key}`;
    if (this.#told.has(name)) {
      return;
    }
    this.#told.add(name);
    if (this.#told.size > REMEMBERED) {
      this.#told.delete(this.#told.values().next().value as string);
    }
    for (const listener of this.#listeners) {
      listener(key, fence);
    }
  };

  close(): void {
    this.#listeners = [];
  }
}
