import { AsyncResource } from 'node:async_hooks';
import { LockStoreError } from '../core/words/errors.js';
import { pause } from '../core/seam/time.js';

/** The longest pause before a server is asked again, in milliseconds. */
const LONGEST_PAUSE_MS = 1_000;
/**
 * The most commands that are repeated at the same time. Grants that further commands would withdraw end with their
 * leases.
 */
const MOST = 1_000;

/**
 * Withdraws, in the background, grants that must not stay in a server: sends a command until the server answers, or the
 * lease is over.
 */
export class Withdrawals {
  #running = 0;
  #closed = false;

  /** Sends `command` until it is answered, for as long as the lease may last. */
  add(command: () => Promise<unknown>, forMs: number): void {
    command().catch((error: unknown) => this.repeat(command, forMs, error));
  }

  /** Repeats a command that was sent, and failed with `error`. */
  repeat(command: () => Promise<unknown>, forMs: number, error: unknown): void {
    if (error instanceof LockStoreError && this.#running < MOST) {
      void this.#repeat(command, forMs);
    }
  }

  close(): void {
    this.#closed = true;
  }

  /** Bound to where the store was made: it must not keep the context of the call that it cleans up after. */
  readonly #repeat = AsyncResource.bind(async (command: () => Promise<unknown>, forMs: number): Promise<void> => {
    const startedAt = performance.now();
    const pauseMs = Math.min(forMs / 10, LONGEST_PAUSE_MS);
    this.#running++;
    while (performance.now() - startedAt + pauseMs < forMs) {
      await pause(pauseMs);
      if (this.#closed) {
        break;
      }
      try {
        await command();
        break;
      } catch (error) {
        if (!(error instanceof LockStoreError)) {
          break;
        }
      }
    }
    this.#running--;
  });
}
