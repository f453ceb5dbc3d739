import { AsyncResource } from 'node:async_hooks';

/** How often expired done marks are deleted while new ones are made, in milliseconds. */
const TIDY_MS = 15_000;

/** Deletes the expired done marks of one database from time to time, while locks are released there. */
export class Tidying {
  readonly #tidySome: () => Promise<boolean>;
  #timer: NodeJS.Timeout | undefined;
  /** Whether done marks were made since the last run. */
  #isMarked = false;
  #isStopped = false;

  /**
   * `tidySome` deletes some done marks, and resolves to whether there may be more. It rejects where the database does
   * not answer.
   */
  constructor(tidySome: () => Promise<boolean>) {
    this.#tidySome = tidySome;
  }

  /** A done mark was made. */
  marked(): void {
    this.#isMarked = true;
    if (!this.#isStopped) {
      this.#timer ??= this.#schedule();
    }
  }

  start(): void {
    this.#isStopped = false;
  }

  /** Stops the timer. No later release starts it again, since the pool may have ended. */
  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Bound to where the store was made: it must not keep the context of the call that made a done mark. */
  readonly #schedule = AsyncResource.bind((): NodeJS.Timeout => setTimeout(() => void this.#tidy(), TIDY_MS).unref());

  /**
   * There is another run after marks were made, since they may expire only after this run; and after a run that failed.
   */
  async #tidy(): Promise<void> {
    const wasMarked = this.#isMarked;
    this.#isMarked = false;
    let isMore: boolean | undefined;
    do {
      isMore = await this.#tidySome().catch(() => undefined);
    } while (isMore && this.#timer);
    if (wasMarked || this.#isMarked || isMore === undefined) {
      this.#timer?.refresh();
    } else {
      this.#timer = undefined;
    }
  }
}
