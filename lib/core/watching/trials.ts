import { AsyncResource } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import { asLockError, LockStoreError, type LockError } from '../words/errors.js';
import type { HoldRecord, LockStore } from '../seam/lock-store.js';
import { LONGEST_COMMAND_MS } from '../seam/time.js';
import type { Lifecycle } from '../seam/lifecycle.js';
import type { Reporter } from './reporter.js';

/** The pause between two trials, in milliseconds. */
const EVERY_MS = 1_000;
/** The lease of a trial: it ends one whose release is lost, in milliseconds. */
const TTL_MS = 4_000;

export const TRIAL_KEY = 'nestjs-distributed-lock:health';

interface TrialParts {
  readonly store: LockStore;
  readonly lifecycle: Lifecycle;
  readonly reporter: Reporter;
}

/**
 * Tries once a second, while a store fails attempts, whether it answers them again: it acquires a key of its own,
 * which no call waits for. So an outage ends when the store is back, and not only with the next call. The outage also
 * lasts as long as the store refuses, even if no call asks it.
 */
export class Trials {
  readonly #parts: TrialParts;
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: TrialParts) {
    this.#parts = parts;
    parts.lifecycle.closed.addEventListener('abort', () => clearTimeout(this.#timer));
  }

  /** The store fails attempts to acquire. */
  begin(): void {
    this.#timer ??= setTimeout(this.#run, EVERY_MS).unref();
  }

  /**
   * Bound to the context in which the store was opened: the timer must not keep the context of the call that armed it.
   */
  readonly #run = AsyncResource.bind((): void => {
    if (!this.#parts.lifecycle.isClosing) {
      this.#parts.lifecycle.inBackground(this.#try());
    }
  });

  async #try(): Promise<void> {
    const { store, lifecycle, reporter } = this.#parts;
    const hold = newHold();
    let failure: LockError | undefined;
    try {
      const { fence } = await store.acquire(hold);
      reporter.checkAnswered(true);
      if (fence !== undefined) {
        await store.release(hold).catch(() => undefined);
      }
    } catch (error) {
      failure = asLockError(error, hold.key);
      // A store that this application closes meanwhile is no outage.
      if (!lifecycle.isClosing) {
        reporter.checkFailed(failure, true);
      }
      if (failure instanceof LockStoreError && failure.unknown) {
        await store.release(Object.freeze({ ...hold, unanswered: true })).catch(() => undefined);
      }
    }
    this.#timer = undefined;
    if (failure && !lifecycle.isClosing) {
      this.begin();
    }
  }
}

function newHold(): HoldRecord {
  return Object.freeze({
    key: TRIAL_KEY,
    // A store is promised 22 characters.
    owner: randomUUID().slice(14),
    id: randomUUID(),
    fence: 0,
    fences: 1,
    ttlMs: TTL_MS,
    limitMs: LONGEST_COMMAND_MS,
    lingering: false,
    unanswered: false,
    by: TRIAL_KEY,
  });
}
