import { setMaxListeners } from 'node:events';
import { callContext } from '../core/calls/call-tree.js';
import type { CallOptions } from '../core/words/call-options.js';
import type { Candidate } from './candidate.js';
import { LockConfigurationError, LockNotAcquiredError, type LockError } from '../core/words/errors.js';
import { Leadership, type LeadershipParts } from './leadership.js';

/** The longest pause after errors in a row, in milliseconds. Whoever led for longer begins anew. */
const LONGEST_PAUSE_MS = 30_000;

interface CandidacyParts extends Omit<LeadershipParts, 'call'> {
  readonly call: CallOptions;
  readonly pauseMs: number;
  /** Ends it when it aborts. */
  readonly signal: AbortSignal | undefined;
}

/**
 * Stands by, leads, and stands by again, until it is stopped.
 *
 * | what ended | what follows |
 * |---|---|
 * | the lease, before the code | it waits for the code to end, and stands by at once |
 * | the code: it returned | it pauses, so that others go first |
 * | the code: it threw, or it could not stand by | the same, for longer each time in a row |
 * | the candidacy | the code is notified, and the lock is released after it |
 */
export class Candidacy implements Candidate {
  readonly #parts: CandidacyParts;
  /** Resolves when it has ended for good. */
  readonly ended: Promise<void>;
  readonly #stopping = new AbortController();
  #leadership: Leadership | undefined;
  #failures = 0;
  /** Whether its pauses keep the process: not where its store was closed without it, as after a boot that failed. */
  #keepsProcess = true;

  constructor(parts: CandidacyParts) {
    this.#parts = parts;
    // One listener for each time that it stands by.
    setMaxListeners(0, this.#stopping.signal);
    parts.signal?.addEventListener('abort', this.#aborted, { once: true });
    if (parts.signal?.aborted) {
      this.#stopping.abort();
    }
    // In the context of no call: a leader goes on when the code that asked for it has ended.
    this.ended = callContext.run(undefined, () => this.#run());
  }

  get key(): string {
    return this.#parts.key;
  }

  isLeader(): boolean {
    return this.#leadership?.isHeld() ?? false;
  }

  stop(): Promise<void> {
    return this.end('released');
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.end('released');
  }

  /** Like `stop()`, with the reason to report. */
  async end(reason: 'released' | 'shutdown'): Promise<void> {
    const leadership = this.#leadership;
    if (!this.#stopping.signal.aborted) {
      this.#stopping.abort();
      leadership?.revoke(reason);
    }
    if (leadership?.isAround) {
      return;
    }
    // Code that goes on for too long is not waited for.
    await (leadership ? Promise.race([this.ended, leadership.left]) : this.ended);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      this.#leadership = new Leadership({ ...this.#parts, call: { ...this.#parts.call, signal } });
      await this.#pause(await this.#end(this.#leadership));
    }
    this.#parts.signal?.removeEventListener('abort', this.#aborted);
  }

  /** Waits until it leads no more, and answers for how long it stays out then, in milliseconds. */
  async #end(leadership: Leadership): Promise<number> {
    const { clock, pauseMs, report } = this.#parts;
    const since = clock.monotonic();
    const reason = await leadership.end();
    this.#keepsProcess = !(reason instanceof LockConfigurationError);
    const hasFailed = reason === 'threw' || typeof reason === 'object';
    this.#failures = hasFailed && clock.monotonic() - since < LONGEST_PAUSE_MS ? this.#failures + 1 : Number(hasFailed);
    if (this.#stopping.signal.aborted) {
      return 0;
    }
    if (typeof reason === 'object') {
      if (isOverOnly(reason)) {
        return 0;
      }
      report({ change: 'failed', error: reason });
    }
    if (!hasFailed && reason !== 'returned') {
      return 0;
    }
    const longestMs = Math.min(pauseMs * 2 ** Math.max(0, this.#failures - 1), Math.max(pauseMs, LONGEST_PAUSE_MS));
    return longestMs * (0.5 + Math.random() / 2);
  }

  #pause(ms: number): Promise<void> {
    const { signal } = this.#stopping;
    return new Promise((resolve) => {
      if (ms === 0 || signal.aborted) {
        resolve();
        return;
      }
      const timer = setTimeout(end, ms);
      if (!this.#keepsProcess) {
        timer.unref();
      }
      signal.addEventListener('abort', end, { once: true });
      function end(): void {
        clearTimeout(timer);
        signal.removeEventListener('abort', end);
        resolve();
      }
    });
  }

  readonly #aborted = (): void => void this.stop();
}

/** A wait ends after some weeks, since no timer lasts for ever. */
function isOverOnly(error: LockError): boolean {
  return error instanceof LockNotAcquiredError && error.reason === 'busy';
}
