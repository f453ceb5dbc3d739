import { LockStoreError } from '../../core/words/errors.js';
import { DONE_MS } from '../../kit/protocol.js';
import { PassingMap } from './passing-map.js';

/**
 * The holds that a server was asked to let in without an answer: a slow server may have a vote on its way long after
 * the others have granted the lock. Those that are never answered are forgotten some time after they could still be
 * carried out.
 */
export class Unanswered {
  readonly #holds = new PassingMap<{ commands: number; readonly askedAt: number }>(({ askedAt }, now) => askedAt + DONE_MS < now);

  has(hold: string): boolean {
    return this.#holds.has(hold);
  }

  /** Counts a command as unanswered until its answer, or a failure that is known. */
  async until<T>(answer: Promise<T>, hold: string): Promise<T> {
    this.#holds.set(hold, { commands: (this.#holds.get(hold)?.commands ?? 0) + 1, askedAt: performance.now() });
    try {
      const answered = await answer;
      this.#answered(hold);
      return answered;
    } catch (error) {
      if (error instanceof LockStoreError && !error.unknown) {
        this.#answered(hold);
      }
      throw error;
    }
  }

  #answered(hold: string): void {
    const asked = this.#holds.get(hold);
    if (asked && --asked.commands === 0) {
      this.#holds.delete(hold);
    }
  }
}
