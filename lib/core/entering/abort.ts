import type { Acquisition } from './acquisition.js';
import type { EntryListener } from './entrance.js';

/**
 * Refuses the call as soon as its signal aborts, unless the call has its locks by then. An attempt in flight goes on,
 * and its grant is released.
 */
export class AbortableEntry implements EntryListener {
  readonly #acquisition: Acquisition;
  readonly #signal: AbortSignal;
  readonly #listener: EntryListener;
  #isOver = false;

  constructor(acquisition: Acquisition, signal: AbortSignal, listener: EntryListener) {
    this.#acquisition = acquisition;
    this.#signal = signal;
    this.#listener = listener;
    signal.addEventListener('abort', this.#abort, { once: true });
  }

  entered(): void {
    this.#end();
    this.#listener.entered();
  }

  refused(error: unknown): void {
    if (!this.#isOver) {
      this.#end();
      this.#listener.refused(error);
    }
  }

  readonly #abort = (): void => {
    const acquisition = this.#acquisition;
    if (!acquisition.hasEntered) {
      this.refused(acquisition.refused(acquisition.frame.keys[0] as string, 'aborted'));
    }
  };

  #end(): void {
    this.#isOver = true;
    this.#signal.removeEventListener('abort', this.#abort);
  }
}
