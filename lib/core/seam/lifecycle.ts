import { atMost } from './time.js';

/** The longest time that shutdown waits for background work, in milliseconds: as long as one command may take. */
const LONGEST_BACKGROUND_MS = 1_000;

/**
 * The life of the locks of one store: `open`; `closing`, while the work that callers wait for goes to its end;
 * `settling`, while background work does; then `closed`.
 */
export class Lifecycle {
  #state: 'open' | 'closing' | 'settling' | 'closed' = 'open';
  #running = 0;
  #onDrained: (() => void) | undefined;
  readonly #background = new Set<Promise<void>>();
  readonly #pauses = new Set<() => void>();
  readonly #closed = new AbortController();

  /** Aborts when it is closed. */
  readonly closed: AbortSignal = this.#closed.signal;

  /** Whether nothing new may begin. */
  get isClosing(): boolean {
    return this.#state !== 'open';
  }

  /** Whether background work is not repeated any more. */
  get isSettling(): boolean {
    return this.#state === 'settling' || this.#state === 'closed';
  }

  /** Work that a caller waits for begins; shutdown waits for its end. */
  begin(): void {
    this.#running++;
  }

  end(): void {
    this.#running--;
    if (this.#running === 0) {
      this.#onDrained?.();
    }
  }

  /** Work that no caller waits for, and that does not reject. */
  inBackground(work: Promise<void>): void {
    this.#background.add(work);
    void work.finally(() => this.#background.delete(work));
  }

  /** Waits `ms` milliseconds before background work is repeated; a shutdown that waits for the work ends the pause. */
  pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        this.#pauses.delete(end);
        resolve();
      };
      const timer = setTimeout(end, ms).unref();
      this.#pauses.add(end);
    });
  }

  /** Refuses new calls, ends running work by `endRunning`, and resolves when nothing is left. */
  async close(endRunning: () => Promise<void>): Promise<void> {
    this.#state = 'closing';
    await Promise.all([endRunning(), this.#drained()]);
    this.#state = 'settling';
    for (const end of this.#pauses) {
      end();
    }
    await atMost(Promise.all(this.#background), LONGEST_BACKGROUND_MS);
    this.#state = 'closed';
    this.#closed.abort();
  }

  async #drained(): Promise<void> {
    if (this.#running > 0) {
      await new Promise<void>((resolve) => {
        this.#onDrained = resolve;
      });
    }
  }
}
